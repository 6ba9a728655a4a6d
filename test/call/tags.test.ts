import { expect, test } from 'vitest'
import { recordedFor, taggedMetadata } from '../../src/call/open/tags.ts'

test('without the header a row has the metadata of the body', () => {
  const metadata = { team: 'a' }
  expect(taggedMetadata(metadata, undefined)).toBe(metadata)
  expect(taggedMetadata(undefined, undefined)).toBeUndefined()
  expect(taggedMetadata(metadata, ' , ')).toBe(metadata)
})

test('a row has no more of the metadata and of the user than any API allows', () => {
  const secret = `sk-${'a1'.repeat(30)}`
  const metadata = { long: 'x'.repeat(50_000), short: 'y', ...Object.fromEntries(many(100)) }
  const { user, metadata: recorded = {} } = recordedFor({ user: 'u'.repeat(9_000), metadata }, {})
  expect([user?.length, String(recorded.long).length, recorded.short]).toEqual([2_048, 2_048, 'y'])
  expect(JSON.stringify(recorded).length).toBeLessThan(70_000)
  expect(Object.keys(recorded).length).toBeGreaterThan(30)
  expect(recordedFor({ metadata: { a: secret } }, {})).toEqual({ metadata: { a: secret } })
})

function many(count: number): [string, string][] {
  return Array.from({ length: count }, (_, at) => [`n${at}`, 'z'.repeat(2_000)])
}

test('tags override the metadata of the body', () => {
  expect(taggedMetadata({ team: 'a', task: 'x' }, 'team=b,cost-center = 47=11 , empty=')).toEqual({
    team: 'b',
    task: 'x',
    'cost-center': '47=11',
    empty: '',
  })
})

test.each([
  ['UTF-8, as command lines send it', Buffer.from('team=münchen 東京').toString('latin1'), 'münchen 東京'],
  ['Latin-1, as browsers send it', 'team=münchen', 'münchen'],
])('the header may be %s', (_, header, value) => {
  expect(taggedMetadata(undefined, header)).toEqual({ team: value })
})

test.each([
  ['no name', '=b', "the tag '=b'; write name=value"],
  ['no value', 'team', "the tag 'team'; write name=value"],
  ['a name with a space', 'my team=b', "the tag 'my team=b'; write name=value"],
  ['a name that is no name', '__proto__=b', "named '__proto__'; choose another name"],
  ['a long name', `${'n'.repeat(65)}=b`, 'a name of 65 characters; 64 are allowed'],
  ['a long value', `team=${'v'.repeat(513)}`, "a value of 513 characters at 'team'; 512 are allowed"],
  ['too many', Array.from({ length: 17 }, (_, n) => `t${n}=x`).join(), '17 tags; send 16 at most'],
])('%s is refused with its place', (_, header, message) => {
  expect(() => taggedMetadata(undefined, header)).toThrow(message)
})
