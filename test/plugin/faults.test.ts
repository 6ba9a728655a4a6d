import { expect, test } from 'vitest'
import { PluginFaults } from '../../src/plugin/faults.ts'

test('a fault that goes on is logged once a minute, with how often it came since, and counted each time', () => {
  const logged: object[] = []
  let at = 0
  const faults = new PluginFaults({ warn: (facts) => void logged.push(facts as object) }, () => at)
  // Every ten seconds, for four minutes.
  for (; at < 240_000; at += 10_000) faults.saw('one', 'reply', 'threw', { call: `${at}`, err: 'no' })
  const facts = { plugin: 'one', hook: 'reply', fault: 'threw', err: 'no' }
  expect(logged).toEqual([
    { ...facts, id: '0' },
    { ...facts, id: '60000', times: 6 },
    { ...facts, id: '120000', times: 6 },
    { ...facts, id: '180000', times: 6 },
  ])
  expect(faults.counts()).toEqual([{ plugin: 'one', hook: 'reply', fault: 'threw', count: 24 }])
  // Each kind has its own minute.
  faults.saw('one', 'reply', 'took_too_long', { err: 'late' })
  faults.saw('one', 'request', 'threw', { err: 'no' })
  faults.saw('two', 'reply', 'threw', { err: 'no' })
  expect(logged).toHaveLength(7)
})
