/** Formats records and reports for people. */
import { describeFault } from "../chain/fault.ts";
import type { AuditRecord } from "../chain/record.ts";
import type { ChainReport } from "./verify.ts";

const TIME_WIDTH = 24;
const TYPE_WIDTH = 23;
const WORKLOAD_WIDTH = 28;

/** Maximum number of characters of the details in the narrow table. */
const DETAILS = 100;

const PLAIN = /^[\w./:@+*-]+$/;

/** Parts of a record come from clients: escapes everything that could control a terminal. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

export function tableHead(wide: boolean): string {
  const head =
    `${"TIME".padEnd(TIME_WIDTH)}  ${"TYPE".padEnd(TYPE_WIDTH)}  ` +
    `${"WORKLOAD".padEnd(WORKLOAD_WIDTH)}  `;
  return wide ? `${head}WRITER  SEQ  DETAILS` : `${head}DETAILS`;
}

export function tableRow({ time, type, fields, chain, seq }: AuditRecord, wide: boolean): string {
  const { workload, ...rest } = fields;
  const said = Object.entries(rest)
    .map(([name, value]) => `${printable(name)}=${detail(value)}`)
    .join(" ");
  const who = typeof workload === "string" ? printable(workload) : "-";
  const row =
    `${printable(time).padEnd(TIME_WIDTH)}  ${printable(type).padEnd(TYPE_WIDTH)}  ` +
    `${who.padEnd(WORKLOAD_WIDTH)}  `;
  if (wide) return `${row}${printable(chain)}  ${seq}  ${said}`.trimEnd();
  return `${row}${said.length > DETAILS ? `${said.slice(0, DETAILS - 1)}…` : said}`.trimEnd();
}

function detail(value: unknown): string {
  if (typeof value === "string" && PLAIN.test(value)) return value;
  return printable(JSON.stringify(value) ?? "");
}

export function renderReport(report: ChainReport): string {
  const { chain, fault, records, segments, first, last, checkpoints, signed, unsigned, live } =
    report;
  const name = printable(chain);
  if (fault !== undefined) {
    const good =
      records === 0
        ? "Nothing before it was verified."
        : `The ${records} records before it are consistent; the last signed one is ` +
          `${signed || "none"}.`;
    return [`${name}: BAD`, `  ${printable(describeFault(fault))}.`, `  ${good}`].join("\n");
  }
  const state = live
    ? "being written"
    : report.closed
      ? "closed and signed"
      : "its writer ended without closing it";
  const lines = [
    `${name}: good (${state})`,
    "  records         " +
      (records === 0
        ? "none"
        : `${first} to ${last.seq}, in ${segments} ${segments === 1 ? "segment" : "segments"}`),
    `  checkpoints     ${checkpoints}, the last at record ${signed}`,
    `  not yet signed  ${unsigned}`,
    `  end             ${last.seq}:${last.hash}`,
    "  key             " +
      report.keys.join(", ") +
      (report.keyFromFolder
        ? " (from the chain's own folder: name one you trust with --public-key)"
        : ""),
  ];
  const notes = [
    report.lost > 0 || report.gaps > 0
      ? `${report.lost} records could not be written, reported by ${report.gaps} CHAIN.GAP`
      : "",
    report.torn > 0 ? `${report.torn} writes were unfinished (CHAIN.TORN)` : "",
    report.clockBack > 0 ? `the clock went back ${report.clockBack} times` : "",
  ].filter((note) => note !== "");
  return [...lines, ...notes.map((note) => `  note            ${note}`)].join("\n");
}
