import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { finder, kinds } from '../../plugins/mask-pii/find.ts'
import { testEach } from '../helpers/slow.ts'
import { expectLinear } from '../helpers/time.ts'
import { corpus, labelled } from './pii-corpus.ts'

const find = finder(kinds)

const others = readFileSync(join(import.meta.dirname, 'pii-unseen.txt'), 'utf8')
  .trimEnd()
  .split('\n')
  .map(labelled)

test.each([
  ['200 texts', 200, corpus()],
  ['193 others, of which 188 were written apart from the rules', 193, others],
])('finds what %s have, and nothing else: recall and precision of at least 0.98', (_, count, texts) => {
  expect(new Set(texts.map(({ text }) => text)).size).toBe(count)
  let [right, wanted, found] = [0, 0, 0]
  const wrong: string[] = []
  for (const { text, spans } of texts) {
    const name = ({ kind, start, end }: { kind: string; start: number; end: number }) =>
      `${kind} ${text.slice(start, end)} ${start}`
    const labels = new Set(spans.map(name))
    const names = find(text).map(name)
    const hits = names.filter((one) => labels.has(one))
    right += hits.length
    wanted += labels.size
    found += names.length
    wrong.push(...names.filter((one) => !labels.has(one)).map((one) => `+ ${one} in ${text}`))
    wrong.push(...[...labels].filter((one) => !names.includes(one)).map((one) => `- ${one} in ${text}`))
  }
  const [recall, precision] = [right / wanted, right / found]
  console.log(
    `mask-pii: recall ${recall.toFixed(3)}, precision ${precision.toFixed(3)} of ${wanted} spans\n${wrong.join('\n')}`,
  )
  expect({ recall, precision, wrong }).toEqual({
    recall: expect.toSatisfy((one) => one >= 0.98),
    precision: expect.toSatisfy((one) => one >= 0.98),
    wrong,
  })
})

testEach(
  [
    'a@',
    '1',
    '1 ',
    '+1',
    'eyJ',
    'eyJa.',
    'sk-',
    'DE89 ',
    'tel ',
    'token=',
    'password=',
    `password: ${'A-'.repeat(30)}/1! `,
    'a=',
    '-----BEGIN PRIVATE KEY-----',
    'a.',
    '(0',
    '<EMAIL_1',
  ],
  { slowIf: (_, index) => index % 4 !== 0 },
)('takes no more than linear time for a megabyte of %j', (unit) => {
  // 32 times the text: what is quadratic takes 1,024 times as long.
  const sizes = { small: 32_768, large: 1_048_576, slack: 6, floorMs: 750 }
  expectLinear((size) => find(unit.repeat(Math.ceil(size / unit.length))), sizes)
})

test('of two kinds in one place one is meant, and spans do not overlap', () => {
  const text = 'Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N, a@b.example, +49 30 123456'
  const spans = find(text)
  expect(spans.map(({ kind }) => kind)).toEqual(['key', 'email', 'phone'])
  for (const [index, { start }] of spans.entries()) expect(start).toBeGreaterThanOrEqual(spans[index - 1]?.end ?? 0)
})

test.each([
  ['password: a/b$c9xyz', 'a/b$c9xyz'],
  ['Password="p@ss/w0rd$1"', 'p@ss/w0rd$1'],
  ['password: aB3/xY9+Zq==', 'aB3/xY9+Zq=='],
  ['passwort: Sommer/2024!', 'Sommer/2024!'],
  ['mot de passe : soleil$42/nuit', 'soleil$42/nuit'],
  ['contraseña=x7$Kp2$mQ', 'x7$Kp2$mQ'],
  ['{"password":"$2b$10$N9qo8uLOickgx2ZMRZoMye"}', '$2b$10$N9qo8uLOickgx2ZMRZoMye'],
  ['password: $up3r-s3cret', '$up3r-s3cret'],
])('finds the password of %j', (text, password) => {
  expect(find(text).map(({ start, end }) => text.slice(start, end))).toEqual([password])
})

test.each([
  'password: /etc/secrets/db1',
  'password: ./secrets/db1.txt',
  'password: ~/db1.txt',
  'password: C:/keys/db1.txt',
  'password: secret/data/db-1',
  'password: Vault/prod/My_File2.txt',
  'password: https://vault.example/v1/db',
  'password: $DB_PASSWORD1',
  'password: ${DB_PASSWORD1}',
  'password=$HOME1/secret',
  'password: $env:DB_PASSWORD1',
  'password: $(cat /run/secrets/db1)',
  'password: min8/max64',
])('finds no password in %j', (text) => expect(find(text)).toEqual([]))

test.each([
  ['(a+)+$', 'repeats without end'],
  ['a{2,}', 'repeats without end'],
  ['(?:a{1,3}|b){2,9}', 'repeats a group'],
  ['(?:a|a){1,30}x', 'repeats a group'],
  ['a{1,40}b{1,40}c', 'more than 500 ways'],
  ['(a)\\1', 'refers to an earlier group'],
])('refuses the pattern %s, which may take long', (pattern, why) => {
  expect(() => finder([], [{ name: 'OWN', pattern }])).toThrow(why)
})

test('finds what patterns of the operator name, before all else', () => {
  const own = finder(kinds, [
    { name: 'STAFF', pattern: '(?:EMP|CUST)-\\d{4,10}@[a-z]{1,8}\\.example', ignore_case: true },
  ])
  expect(own('emp-12345@acme.example').map(({ kind }) => kind)).toEqual(['STAFF'])
})
