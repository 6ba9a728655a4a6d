import { expect, test } from 'vitest'
import { taggedMetadata } from '../../src/call/open/tags.ts'

test('without the header a row has the metadata of the body', () => {
  const metadata = { team: 'a' }
  expect(taggedMetadata(metadata, undefined)).toBe(metadata)
  expect(taggedMetadata(undefined, undefined)).toBeUndefined()
  expect(taggedMetadata(metadata, ' , ')).toBe(metadata)
})

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
