import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { monthlyLimit } from '../../src/cli/import/budgets.ts'
import { ForeignFile, pathText } from '../../src/cli/import/foreign-file.ts'
import { readRows } from '../../src/cli/import/litellm-rows.ts'
import { columnValue, insertedRows, textList, timeIn } from '../../src/cli/import/sql-values.ts'
import { folderOf } from '../manifest/files.ts'

const copy = `COPY public."LiteLLM_TeamTable" (team_id, team_alias, models, metadata) FROM stdin;
t1\tA\\tB\t{gpt,"a b"}\t{"x": "line\\\\nbreak"}
t2\t\\N\t{}\t{}
\\.
`
const expected = [
  { team_id: 't1', team_alias: 'A\tB', models: '{gpt,"a b"}', metadata: '{"x": "line\\nbreak"}' },
  { team_id: 't2', team_alias: null, models: '{}', metadata: '{}' },
]

/** A program that answers queries by the table in them, and writes what it was given into a file. */
function psqlThat(answers: Record<string, string>): string {
  return `#!/usr/bin/env node
const { env, argv } = process
const seen = [env.PGUSER, env.PGPASSWORD, env.PGDATABASE, env.PGOPTIONS].join(' ')
require('node:fs').writeFileSync(require('node:path').join(__dirname, 'seen'), seen)
const found = Object.entries(${JSON.stringify(answers)}).find(([table]) => argv.at(-1).includes(table))
console.log(found ? found[1] : '')
`
}

describe('rows of LiteLLM', () => {
  test('are read from the COPY of a dump, and other tables are passed over', async () => {
    const folder = folderOf({ 'dump.sql': `COPY public."Other" (a) FROM stdin;\nx\n\\.\n${copy}` })
    expect((await readRows(join(folder, 'dump.sql'))).LiteLLM_TeamTable).toEqual(expected)
  })

  test('are read from INSERT statements, also of several rows and lines', async () => {
    const text = `INSERT INTO public."Other" (a) VALUES ('x');
INSERT INTO public."LiteLLM_TeamTable" (team_id, team_alias, models, max_budget, blocked) VALUES ('t1', 'It''s
two; lines)', '{gpt}', 12.5, false), ('t2', NULL, '{}', NULL, true);
`
    const folder = folderOf({ 'dump.sql': text })
    expect((await readRows(join(folder, 'dump.sql'))).LiteLLM_TeamTable).toEqual([
      { team_id: 't1', team_alias: "It's\ntwo; lines)", models: '{gpt}', max_budget: '12.5', blocked: 'false' },
      { team_id: 't2', team_alias: null, models: '{}', max_budget: null, blocked: 'true' },
    ])
  })

  test('are read from a folder of CSV files, and from JSON of the API', async () => {
    const folder = folderOf({
      'LiteLLM_TeamTable.csv': 'team_id,models\nt1,"{gpt,""a b""}"\n',
      'keys.json': JSON.stringify({ keys: [{ token: 'abc' }], total_count: 1 }),
      'teams.json': JSON.stringify([{ team_id: 't2' }]),
      'unrelated.csv': 'a\n1\n',
    })
    const rows = await readRows(folder)
    expect(rows.LiteLLM_VerificationToken).toEqual([{ token: 'abc' }])
    expect(rows.LiteLLM_TeamTable).toEqual([{ team_id: 't1', models: '{gpt,"a b"}' }, { team_id: 't2' }])
  })

  test('of a server need psql, and the message has no password', async () => {
    vi.stubEnv('PATH', '/nowhere')
    const read = readRows('postgresql://user:the-password@127.0.0.1:1/litellm')
    await expect(read).rejects.toThrow('psql is not installed')
    await expect(read).rejects.not.toThrow('the-password')
    vi.unstubAllEnvs()
  })

  test('of a server are read by psql: the tables that are there, in the schema of the address', async () => {
    const answers = {
      pg_class: 'LiteLLM_VerificationToken\nLiteLLM_TeamTable\nother',
      LiteLLM_VerificationToken: '{"token":"abc"}\n{"token":"def"}',
      LiteLLM_TeamTable: '{"team_id":"t1"}',
    }
    const folder = folderOf({ psql: psqlThat(answers) })
    chmodSync(join(folder, 'psql'), 0o755)
    vi.stubEnv('PATH', `${folder}:${process.env.PATH}`)
    const rows = await readRows('postgresql://me:a%40b@127.0.0.1:1/litellm?schema=two%20words&connection_limit=5')
    expect(rows).toMatchObject({ LiteLLM_TeamTable: [{ team_id: 't1' }], LiteLLM_UserTable: [] })
    expect(rows.LiteLLM_VerificationToken).toEqual([{ token: 'abc' }, { token: 'def' }])
    expect(readFileSync(join(folder, 'seen'), 'utf8')).toBe('me a@b litellm -c search_path="two\\ words"')
    writeFileSync(join(folder, 'psql'), psqlThat({ pg_class: 'other' }))
    await expect(readRows('postgresql://me@127.0.0.1:1/x')).rejects.toThrow('has no table LiteLLM_VerificationToken')
    vi.unstubAllEnvs()
  })

  test('that cannot be read are refused', async () => {
    const folder = folderOf({ 'a.sql': `INSERT INTO "LiteLLM_TeamTable" VALUES (1);\n`, 'b.json': '{' })
    await expect(readRows(join(folder, 'a.sql'))).rejects.toThrow('--column-inserts')
    await expect(readRows(join(folder, 'b.json'))).rejects.toThrow('b.json')
    await expect(readRows(join(folder, 'c'))).rejects.toThrow('There is no file or folder')
  })
})

test('an INSERT that has not ended is not read', () => {
  expect(insertedRows(`INSERT INTO t (a) VALUES ('x`)).toBeUndefined()
  expect(insertedRows(`INSERT INTO t (a, b) VALUES (E'x\\ny', 1);`)).toEqual({
    table: 't',
    rows: [{ a: 'x\ny', b: '1' }],
  })
})

test.each([
  ['{a,"b c","d\\"e"}', ['a', 'b c', 'd"e']],
  ['["a"]', ['a']],
  ['{}', []],
  [null, []],
])('the list %j has the texts %j', (text, list) => expect(textList(text)).toEqual(list))

test('documents are parsed, and times without a zone are UTC', () => {
  expect(columnValue('{"a": 1}')).toEqual({ a: 1 })
  const at = Date.UTC(2026, 0, 2, 3, 4, 5)
  for (const text of [
    '2026-01-02 03:04:05',
    '2026-01-02T03:04:05Z',
    '2026-01-02 04:04:05+01',
    '2026-01-02 03:04:05.000',
  ])
    expect(timeIn(text), text).toBe(at)
})

test.each([
  [100, '1mo', undefined, { limit: 100 }],
  [100, '30d', undefined, { limit: 100, note: '30d became the calendar month (UTC)' }],
  [
    5,
    '1d',
    undefined,
    { limit: 150, note: '$5 in 1d became $150 a calendar month, all of which can be spent at once' },
  ],
  [
    5,
    'daily',
    undefined,
    { limit: 150, note: '$5 in daily became $150 a calendar month, all of which can be spent at once' },
  ],
  [10, undefined, 4, { limit: 6, note: 'a budget of $10 for good became $6 a month: what was left of it' }],
  // 0 would be no limit at all.
  [0, '1mo', undefined, { limit: 0.000001 }],
  [
    10,
    undefined,
    12,
    { limit: 0.000001, note: 'a budget of $10 for good became $0.000001 a month: what was left of it' },
  ],
])('a budget of $%d for %s, of which %s is spent, is a monthly limit of %j', (budget, duration, spent, limit) => {
  expect(monthlyLimit(budget, duration, spent)).toEqual(limit)
})

test('members that were not used are named as far up as possible', () => {
  const file = new ForeignFile({ a: { b: 1, c: { d: 2, e: [] } }, f: [{ g: 1 }, { g: 2 }], h: null, 'i j': 1 })
  file.take(['a', 'b'])
  file.take(['f', 0, 'g'])
  expect(file.unused().map(pathText)).toEqual(['a.c', 'f[1]', '["i j"]'])
})
