import { describe, expect, test } from 'vitest'
import { UnorderedSet } from '../../src/runtime/unordered-set.ts'

const item = (name: string) => ({ name, place: -1 })

describe('a roster', () => {
  test('has what was added and not deleted, whatever the order', () => {
    const roster = new UnorderedSet<ReturnType<typeof item>>()
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(item) as [ReturnType<typeof item>, ...ReturnType<typeof item>[]]
    for (const each of [a, b, c, d]) if (each) roster.add(each)
    roster.delete(a)
    roster.delete(d as typeof a)
    roster.add(a)
    expect([...roster].map(({ name }) => name).sort()).toEqual(['a', 'b', 'c'])
    expect(roster.size).toBe(3)
    for (const each of [...roster]) roster.delete(each)
    expect(roster.size).toBe(0)
    expect([a, b, c, d].map((each) => each?.place)).toEqual([-1, -1, -1, -1])
  })

  test('has each item once, and does without one that it has not', () => {
    const roster = new UnorderedSet<ReturnType<typeof item>>()
    const [a, b] = [item('a'), item('b')]
    roster.add(a)
    roster.add(a)
    roster.delete(b)
    roster.delete(a)
    roster.delete(a)
    expect([...roster]).toEqual([])
  })

  test('can be changed while it is gone through', () => {
    const roster = new UnorderedSet<ReturnType<typeof item>>()
    const items = Array.from({ length: 5 }, (_, index) => item(`${index}`))
    for (const each of items) roster.add(each)
    const seen: string[] = []
    for (const each of roster) {
      seen.push(each.name)
      roster.delete(each)
    }
    expect(seen).toEqual(['0', '1', '2', '3', '4'])
    expect(roster.size).toBe(0)
  })
})
