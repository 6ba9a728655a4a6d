import { rmSync } from 'node:fs'
import { afterEach, expect } from 'vitest'
import { routerProcess } from '../../helpers/process.ts'
import { type LoopbackProvider, pause, within } from '../../helpers/provider.ts'
import { routerFolder } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'
import {
  byStatus,
  callNano,
  callOnce,
  type Ended,
  newKey,
  pricedManifest,
  pricedProvider,
  storeIn,
  tenTokens,
} from './budget-world.ts'

// The server dies in the middle of a burst that is larger than the limit of the key.

let provider: LoopbackProvider
let folder = ''

afterEach(async () => {
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

testEach([1, 4], { slowIf: (threads) => threads > 1 })(
  'after kill -9 of %d threads in a burst rows and sums agree, and exactly the rest of the limit can still be spent',
  async (threads) => {
    const death = Promise.withResolvers<void>()
    // Half of the calls are still running at the death, however slow the machine.
    provider = await pricedProvider({ wait: (n) => (n % 2 === 0 ? pause(20 + n) : death.promise) })
    const made = routerFolder({ files: { 'providers/priced.yaml': pricedManifest(provider.url) }, threads })
    folder = made.folder
    const server = await routerProcess(made.configPath)
    const { url } = server
    const limitNano = 60n * callNano
    const store = await storeIn(folder)
    const organization = (await store.organizations.list())[0]?.id ?? ''
    const key = await newKey(store, { monthlyLimitNano: limitNano })
    const ledgerState = async () => {
      const rows = await Array.fromAsync(store.ledger.each({ key: key.id }))
      expect(await store.spend.ofOrganization(organization, Date.now())).toBe(
        await store.spend.ofKey(key.id, Date.now()),
      )
      expect(rows.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n)).toBe(
        await store.spend.ofKey(key.id, Date.now()),
      )
      expect(await store.spend.ofKey(key.id, Date.now())).toBeLessThanOrEqual(limitNano)
      return {
        spent: await store.spend.ofKey(key.id, Date.now()),
        complete: rows.filter(({ outcome }) => outcome === 'complete'),
      }
    }

    const delivered: Ended[] = []
    const burst = Array.from({ length: 200 }, async (_, n) => {
      const ended = await callOnce(url, key.secret, n % 2 === 0 ? tenTokens : { ...tenTokens, stream: true })
      if (ended.whole) delivered.push(ended)
    })
    await expect.poll(() => delivered.length, { interval: 5 }).toBeGreaterThan(15)
    await server.end('SIGKILL')
    await within(5_000, 'the callers', Promise.all(burst))
    death.resolve()

    const { url: second } = await routerProcess(made.configPath)
    const afterDeath = await ledgerState()
    expect(afterDeath.complete.length).toBeGreaterThanOrEqual(delivered.length)
    expect(afterDeath.spent).toBeLessThan(limitNano)
    const left = Number((limitNano - afterDeath.spent) / callNano)
    const rest = await Promise.all(Array.from({ length: 100 }, () => callOnce(second, key.secret, tenTokens)))
    expect(byStatus(rest)).toEqual({ 200: left, 402: 100 - left })
    expect((await ledgerState()).spent).toBe(limitNano)
    await store.close()
  },
)
