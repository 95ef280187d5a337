import type { AdmitRequest, Amounts, Lease } from "./contract.ts";
import { type DayAccount, whole } from "./day-account.ts";

/** A lease with what it needs to be given back. */
export class HeldLease implements Lease {
  readonly id: string;
  readonly scope: string;
  readonly day: string;
  readonly accounts: readonly DayAccount[];
  readonly amounts: Amounts;
  /** The store may have it, so that settling must take it away there. */
  inStore = false;
  settled = false;

  constructor(request: AdmitRequest, day: string, accounts: readonly DayAccount[]) {
    this.id = request.id;
    this.scope = request.scope;
    this.day = day;
    this.accounts = accounts;
    const { tokens, microUsd, requests } = request.reserve;
    this.amounts = { tokens: whole(tokens), microUsd: whole(microUsd), requests: whole(requests) };
  }

  /** As the store's scripts read it: `day|tokens|microUsd|requests|account|...`. */
  get packed(): string {
    const { tokens, microUsd, requests } = this.amounts;
    let packed = `${this.day}|${tokens}|${microUsd}|${requests}`;
    for (const account of this.accounts) packed += `|${account.field}`;
    return packed;
  }
}
