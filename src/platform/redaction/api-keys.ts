/**
 * The forms of keys that vendors publish, so that leaked ones can be found. Sources: the vendors'
 * own pages, and the patterns of https://docs.github.com/en/code-security/secret-scanning and
 * https://github.com/gitleaks/gitleaks.
 */

/** Prefixes of keys, with the minimum length of the whole key. */
const PREFIXES: readonly (readonly [prefix: string, least: number])[] = [
  // Models
  ["sk-", 20],
  ["gsk_", 30],
  ["xai-", 30],
  ["hf_", 30],
  ["r8_", 30],
  ["pplx-", 40],
  ["nvapi-", 40],
  ["pcsk_", 40],
  ["lsv2_", 40],
  ["tvly-", 20],
  // This gateway
  ["svc_", 30],
  ["svcw_", 30],
  // Clouds
  ["AIza", 39],
  ["ya29.", 20],
  ["1//0", 40],
  ["GOCSPX-", 20],
  ["dop_v1_", 40],
  ["doo_v1_", 40],
  ["dor_v1_", 40],
  ["hvs.", 24],
  ["hvb.", 24],
  ["EAAA", 60],
  ["AGE-SECRET-KEY-1", 60],
  // Code and packages
  ["ghp_", 30],
  ["gho_", 30],
  ["ghu_", 30],
  ["ghs_", 30],
  ["ghr_", 30],
  ["github_pat_", 30],
  ["glpat-", 20],
  ["gldt-", 20],
  ["glrt-", 20],
  ["glptt-", 20],
  ["glsoat-", 20],
  ["ATATT", 40],
  ["ATBB", 30],
  ["npm_", 36],
  ["pypi-", 40],
  ["rubygems_", 40],
  ["dckr_pat_", 30],
  ["CLOJARS_", 40],
  ["AKCp", 60],
  ["sntrys_", 40],
  ["sntryu_", 40],
  ["glc_", 30],
  ["glsa_", 30],
  ["NRAK-", 30],
  ["PMAK-", 40],
  ["pscale_", 30],
  ["sbp_", 40],
  ["lin_api_", 30],
  ["figd_", 30],
  ["ntn_", 40],
  ["dp.pt.", 40],
  ["dp.st.", 40],
  // Messages and payments
  ["xoxb-", 20],
  ["xoxp-", 20],
  ["xoxa-", 20],
  ["xoxe-", 20],
  ["xoxr-", 20],
  ["xoxs-", 20],
  ["xapp-", 20],
  ["sk_live_", 20],
  ["sk_test_", 20],
  ["rk_live_", 20],
  ["rk_test_", 20],
  ["pk_live_", 20],
  ["whsec_", 20],
  ["shpat_", 30],
  ["shpss_", 30],
  ["shpca_", 30],
  ["sq0atp-", 26],
  ["sq0csp-", 40],
  ["SG.", 40],
  ["EAACEdEose0cBA", 30],
];

/** Keys whose prefix is a word as well, or that have none. */
const PATTERNS: readonly RegExp[] = [
  // AWS
  /^A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}$/,
  // Alibaba, Tencent
  /^LTAI[A-Za-z0-9]{12,26}$/,
  /^AKID[A-Za-z0-9]{32}$/,
  // Databricks
  /^dapi[0-9a-f]{32}(?:-\d)?$/,
  // Twilio
  /^(?:SK|AC)[0-9a-f]{32}$/,
  // Mailgun
  /^key-[0-9a-f]{32}$/,
  // Notion
  /^secret_[A-Za-z0-9]{43}$/,
  // Fireworks, Cerebras
  /^fw_[A-Za-z0-9]{20,30}$/,
  /^csk-[a-z0-9]{40,60}$/,
  // Discord: an id, a time and a signature
  /^[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}$/,
  // Telegram: the secret part
  /^AA[\w-]{33}$/,
];

const MIN_KEY = 16;

/** Returns whether a run of characters is a key of a known vendor. */
export function isApiKey(run: string): boolean {
  if (run.length < MIN_KEY) return false;
  return (
    PREFIXES.some(
      ([prefix, least]) =>
        run.length >= least && run.startsWith(prefix) && isRandom(run.slice(prefix.length)),
    ) || PATTERNS.some((pattern) => pattern.test(run))
  );
}

const BEGIN =
  /^(?:A(?:KIA|SIA|BIA|CCA)|LTAI|AKID|dapi[0-9a-f]|(?:SK|AC|key-)[0-9a-f]{4}|secret_|fw_|csk-|AA[\w-]{10}|[MNO][\w-]{22,27}\.)/;

/** Returns whether a run begins as a key of a vendor does; a line end may have cut it. */
export function beginsAsApiKey(run: string): boolean {
  return BEGIN.test(run) || PREFIXES.some(([prefix]) => run.startsWith(prefix));
}

/** Words with hyphens have no digits, and are written in one case. */
function isRandom(rest: string): boolean {
  return (
    /^[A-Za-z0-9._/=-]+$/.test(rest) &&
    (/[0-9]/.test(rest) || (/[a-z]/.test(rest) && /[A-Z]/.test(rest)))
  );
}
