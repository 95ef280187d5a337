/** The forms of keys that vendors publish, so that leaked ones can be found. */

/** Prefixes of keys, with the minimum length of the whole key. */
const PREFIXES: readonly (readonly [prefix: string, least: number])[] = [
  ["sk-", 20],
  ["sk_live_", 20],
  ["sk_test_", 20],
  ["rk_live_", 20],
  ["pk_live_", 20],
  ["whsec_", 20],
  ["svc_", 30],
  ["svcw_", 30],
  ["ghp_", 30],
  ["gho_", 30],
  ["ghu_", 30],
  ["ghs_", 30],
  ["ghr_", 30],
  ["github_pat_", 30],
  ["glpat-", 20],
  ["xoxb-", 20],
  ["xoxp-", 20],
  ["xoxa-", 20],
  ["xoxe-", 20],
  ["xapp-", 20],
  ["AKIA", 20],
  ["ASIA", 20],
  ["AIza", 39],
  ["ya29.", 20],
  ["GOCSPX-", 20],
  ["SG.", 40],
  ["npm_", 36],
  ["pypi-", 40],
  ["hf_", 30],
  ["dop_v1_", 40],
  ["shpat_", 30],
  ["lin_api_", 30],
  ["ATATT", 40],
  ["gsk_", 30],
  ["xai-", 30],
  ["r8_", 30],
  ["tvly-", 20],
];

/** Returns whether a run of characters is a key of a known vendor. */
export function isApiKey(run: string): boolean {
  return PREFIXES.some(
    ([prefix, least]) =>
      run.length >= least && run.startsWith(prefix) && /^[A-Za-z0-9._=-]+$/.test(run),
  );
}
