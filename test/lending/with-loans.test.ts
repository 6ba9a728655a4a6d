import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Need, Standing } from '../../src/lending/account.ts'
import { Borrowing, freeIn, Purse } from '../../src/lending/purse.ts'
import { withLoans } from '../../src/lending/with-loans.ts'

const needOf = (account: string): Need => ({ account, kind: 'money', limit: 10n, least: 1n, wish: 1n })

/** A bank that lends what is needed, and calls back at once all that lies idle of anything else: others want it. */
function besiegedPurse(isShort: (account: string) => boolean = () => false) {
  const known = new Set<string>()
  const asked: string[][] = []
  const purse: Purse = new Purse({
    lend(needs, onAnswer) {
      const names = needs.map(({ account }) => account)
      asked.push(names)
      purse.recall([...known])
      for (const name of names) known.add(name)
      const isGranted = !names.some(isShort)
      const standings = needs.map((need): Standing => {
        const granted = isGranted ? need.least : 0n
        const none = { extra: 0n, spent: 0n, lent: 0n, left: 0n, isOverdrawn: false, waitMs: 0, resetMs: 0 }
        return { ...need, ...none, granted, isShort: isShort(need.account) }
      })
      queueMicrotask(() => onAnswer({ isGranted, standings }))
    },
    giveBack() {},
  })
  /** As calls do: first what limits the number of calls, then the money. */
  const admit = () => {
    for (const name of ['requests', 'key', 'group']) {
      const account = purse.find(needOf(name))
      if (!account || freeIn(account) < 1n)
        throw new Borrowing(purse, [needOf(name)], (standings) => {
          const short = standings.find((standing) => standing.isShort)?.account
          return new RouterError(name === 'requests' ? 'rate_limited' : 'budget_exhausted', `${short} is exhausted`)
        })
    }
    return 'admitted'
  }
  return { admit, asked }
}

test('a call that needs several accounts asks for all of them together in the end, so others cannot take one after the other', async () => {
  const { admit, asked } = besiegedPurse()
  expect(await withLoans(admit)).toBe('admitted')
  expect(asked.at(-1)?.sort()).toEqual(['group', 'key', 'requests'])
  expect(asked.length).toBeLessThan(5)
})

test('the refusal names the account that is short, whatever else was asked for with it', async () => {
  const { admit } = besiegedPurse((account) => account === 'group')
  await expect(withLoans(admit)).rejects.toThrow(new RouterError('budget_exhausted', 'group is exhausted'))
})

test('what may have changed meanwhile is checked before the call is admitted, at once or when it has been read', async () => {
  const { admit } = besiegedPurse()
  const checked: string[] = []
  expect(await withLoans(admit, () => void checked.push('at once'))).toBe('admitted')
  const other = besiegedPurse()
  expect(await withLoans(other.admit, async () => void checked.push('read'))).toBe('admitted')
  expect(new Set(checked)).toEqual(new Set(['at once', 'read']))
  const revoked = besiegedPurse()
  const check = () => Promise.reject(new RouterError('invalid_key', 'revoked'))
  await expect(withLoans(revoked.admit, check)).rejects.toThrow('revoked')
})
