import type { AdmitRequest, Amounts, Lease } from "../contract.ts";
import { type DayAccount, wholeAmounts } from "./day-account.ts";

/** A lease with the data needed to return it. */
export class HeldLease implements Lease {
  readonly id: string;
  readonly scope: string;
  readonly day: string;
  readonly accounts: readonly DayAccount[];
  /** Reserved amounts. */
  amounts: Amounts;
  /** The store may hold the lease, so settling must remove it there. */
  inStore = false;
  settled = false;

  constructor(request: AdmitRequest, day: string, accounts: readonly DayAccount[]) {
    this.id = request.id;
    this.scope = request.scope;
    this.day = day;
    this.accounts = accounts;
    this.amounts = wholeAmounts(request.reserve);
  }

  /**
   * Returns the lease as the store's scripts read it: `day|tokens|microUsd|requests|account|...`.
   */
  packed({ tokens, microUsd, requests }: Amounts = this.amounts): string {
    let packed = `${this.day}|${tokens}|${microUsd}|${requests}`;
    for (const account of this.accounts) packed += `|${account.field}`;
    return packed;
  }
}
