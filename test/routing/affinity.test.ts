import { expect, test } from 'vitest'
import { Affinity } from '../../src/routing/affinity.ts'
import type { KeptFinding } from '../../src/routing/findings.ts'

/** Kept keys under a clock that is moved by hand, and the findings that are reported to other event loops. */
function underClock() {
  const clock = { at: 0 }
  const reported: KeptFinding[] = []
  const affinity = new Affinity({ now: () => clock.at, onFound: (finding) => void reported.push(finding) })
  return { clock, reported, affinity }
}

test('a key stays at its target for as long as it is used, and is forgotten when it was idle', () => {
  const { clock, reported, affinity } = underClock()
  // Each time a little later, whether it was reported just before or not.
  for (const passed of [0, 100, 300, 499, 501, 999, 400, 400, 400]) {
    clock.at += passed
    affinity.keep('k', 'p/m', 1_000)
    clock.at += 999
    expect(affinity.find('k')).toBe('p/m')
    clock.at -= 999
  }
  expect(reported.length).toBeLessThan(9)
  clock.at += 1_000
  expect(affinity.find('k')).toBeUndefined()
})

test('a key that is used is reported before it expires elsewhere', () => {
  const { clock, reported, affinity } = underClock()
  for (let call = 0; call < 500; call++) {
    affinity.keep('k', 'p/m', 1_000)
    expect(reported.at(-1)?.until).toBeGreaterThan(clock.at + 500)
    clock.at += 60
  }
  // Once in each half of its time.
  expect(reported.length).toBeLessThanOrEqual(1 + (500 * 60) / 480)
})

test('a change of the target is reported at once, as later than what it replaces', () => {
  const { reported, affinity } = underClock()
  affinity.keep('k', 'p/m', 1_000)
  affinity.keep('k', 'p/other', 1_000)
  affinity.keep('k', 'p/m', 1_000)
  expect(reported.map(({ target }) => target)).toEqual(['p/m', 'p/other', 'p/m'])
  const times = reported.map(({ at }) => at)
  expect(times).toEqual([...new Set(times)].toSorted((one, other) => one - other))
})

test('the later of two findings about a key holds, in whatever order they arrive', () => {
  for (const order of [
    [0, 1],
    [1, 0],
    [0, 1, 0],
  ]) {
    const { affinity } = underClock()
    const findings: KeptFinding[] = [
      { kind: 'kept', at: 5, key: 'k', target: 'p/early', until: 100 },
      { kind: 'kept', at: 6, key: 'k', target: 'p/late', until: 100 },
    ]
    for (const place of order) affinity.merge(findings[place] as KeptFinding)
    expect(affinity.find('k')).toBe('p/late')
  }
  const { affinity } = underClock()
  affinity.merge({ kind: 'kept', at: 5, key: 'k', target: 'p/first', until: 100 })
  affinity.merge({ kind: 'kept', at: 5, key: 'k', target: 'p/second', until: 100 })
  expect(affinity.find('k')).toBe('p/first')
})

test('an event loop that starts gets the keys that were used last', () => {
  const { clock, affinity } = underClock()
  for (let key = 0; key < 12_000; key++) affinity.keep(`${key}`, 'p/m', 1_000)
  affinity.keep('0', 'p/m', 1_000)
  const findings = affinity.findings()
  expect(findings).toHaveLength(10_000)
  expect([findings[0]?.key, findings[1]?.key, findings.at(-1)?.key]).toEqual(['0', '11999', '2001'])
  clock.at = 500
  affinity.keep('late', 'p/m', 1_000)
  clock.at = 1_000
  expect(affinity.findings().map(({ key }) => key)).toEqual(['late'])
})
