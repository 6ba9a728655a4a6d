import { accountName, parseAccount } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Payment } from '../accounts/table.ts'
import type { CallRecord } from '../core/call.ts'
import { costNano } from '../store/ledger/ledger-row.ts'
import { monthOf, type Spend } from '../store/ledger/sums.ts'
import type { LedgerQueue } from './ledger.ts'

/** The stored sums, read at the first use of an account. */
export type SpendTables = Pick<Spend, 'ofKey' | 'ofGroup' | 'totalOfOrganization'>

/** Returns the function that reads what a money account has spent, by its name. */
export function spendReader(tables: SpendTables): (account: string) => bigint {
  return (account) => {
    const { owner, id, month } = parseAccount(account)
    if (owner === 'organization') return tables.totalOfOrganization(id)
    const at = Date.parse(`${month}-01T00:00:00Z`)
    return owner === 'key' ? tables.ofKey(id, at) : tables.ofGroup(id, at)
  }
}

/** Returns the accounts that a row is charged to, and its cost. */
export function paymentOf(row: CallRecord): Payment {
  const { key, group, organization, at } = row
  const month = monthOf(at)
  const names = [`key ${key} ${month}`, 'organization']
  if (group !== undefined) names.push(`group ${group} ${month}`)
  return { accounts: names.map((name) => accountName(organization, name)), cost: costNano(row) }
}

/** Returns a ledger that counts the cost of a row as written once it is on disk, or in the spill file. */
export function countingLedger(
  ledger: Pick<LedgerQueue, 'settle'>,
  accounts: Pick<Accounts, 'written'>,
): Pick<LedgerQueue, 'settle'> {
  return {
    async settle(record, response) {
      await ledger.settle(record, response)
      accounts.written([paymentOf(record)])
    },
  }
}

/** Adds up payments of the same accounts. */
export function combined(payments: readonly Payment[]): Payment[] {
  const found = new Map<string, { accounts: readonly string[]; cost: bigint }>()
  for (const { accounts, cost } of payments) {
    const name = accounts.join('\n\n')
    const known = found.get(name)
    if (known) known.cost += cost
    else found.set(name, { accounts, cost })
  }
  return [...found.values()]
}
