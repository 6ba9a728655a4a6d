import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { within } from '../../helpers/provider.ts'
import { testKey } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

const project = join(import.meta.dirname, '../../..')

/** The first version that could be installed as one file. Its tables lack what came later. */
const first = '03aa73cf'
const hasHistory = spawnSync('git', ['-C', project, 'cat-file', '-e', `${first}^{commit}`]).status === 0
if (!hasHistory) console.log(`Skipped: the update from an earlier version, as the history lacks ${first}`)

/** How the two versions are started: EARLIER_PROGRAM and PRESENT_PROGRAM name files that were built, instead of checkouts. */
const commandOf = (built: string | undefined, checkout: string): [string, ...string[]] =>
  built ? [built] : [process.execPath, join(checkout, 'src/start.js')]

const checkout = hasHistory ? mkdtempSync(join(tmpdir(), 'earlier-version-')) : ''
const earlier = commandOf(process.env.EARLIER_PROGRAM, checkout)
const present = commandOf(process.env.PRESENT_PROGRAM, project)

describe.skipIf(!hasHistory)('an update in place from an earlier version', slow, () => {
  beforeAll(() => {
    const archive = execFileSync('git', ['-C', project, 'archive', first], { maxBuffer: 2 ** 28 })
    execFileSync('tar', ['-x', '-C', checkout], { input: archive })
    symlinkSync(join(project, 'node_modules'), join(checkout, 'node_modules'))
  }, 60_000)
  afterAll(() => rmSync(checkout, { recursive: true, force: true }))

  test('keeps what the database has; the earlier version refuses it then, and takes a copy from before', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'updated-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    for (const name of ['plugins', 'providers']) mkdirSync(join(folder, name))
    cpSync(join(checkout, 'providers/demo.yaml'), join(folder, 'providers/demo.yaml'))
    writeFileSync(join(folder, 'plugins/counter.ts'), counter)
    writeFileSync(join(folder, 'config.yaml'), config)
    const before = await started(earlier, folder)
    const made = await fill(before.url)
    const seen = await stateOf(before.url, made)
    expect(await before.end()).toBe(0)
    const database = join(folder, 'data/router.sqlite')
    const copy = join(folder, 'before.sqlite')
    copyDatabase(database, copy)

    const check = run(present, folder, 'upgrade', '--check')
    expect({ ...check, stdout: '' }).toMatchObject({ status: 3 })
    const after = await started(present, folder)
    expect(await stateOf(after.url, made)).toEqual(seen)
    // Everything goes on: the values of plugins, conversations that are stored, budgets.
    expect(await textOf(after.url, made.secret, { input: 'And now?', previous_response_id: made.response })).toContain(
      '2',
    )
    expect(await after.end()).toBe(0)
    expect(run(present, folder, 'ledger', 'check').stdout).toContain('is sound')

    const refused = run(earlier, folder, 'serve')
    expect(refused.status).toBe(1)
    expect(refused.stderr).toContain('this database was written by a newer inference-router')
    copyDatabase(copy, database)
    const again = await started(earlier, folder)
    expect(await stateOf(again.url, made)).toEqual(seen)
    expect(await again.end()).toBe(0)
  })
})

/** Copies a database that nobody uses: what was written last may still be in the file beside it. */
function copyDatabase(from: string, to: string): void {
  for (const end of ['', '-wal', '-shm']) {
    rmSync(to + end, { force: true })
    if (existsSync(from + end)) cpSync(from + end, to + end)
  }
}

const config = `server: { host: 127.0.0.1, port: 0 }
store: { url: "sqlite:data/router.sqlite" }
plugins: [{ name: counter }]
`

/** A plugin that writes into each answer how many it has seen. */
const counter = `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({
  description: 'counts answers',
  setup: (_, { values }) => ({
    async reply(reply) {
      if (!('chat' in reply)) return undefined
      const count = Number((await values.get('answers')) ?? 0) + 1
      await values.set('answers', count)
      return { ...reply, chat: { ...reply.chat, parts: [{ type: 'text', text: 'answer ' + count }] } }
    },
  }),
})
`

type Made = { secret: string; key: string; response: string }

/** Writes into every table that clients and operators can write to. */
async function fill(url: string): Promise<Made> {
  const post = (path: string, body: object, key?: string) =>
    asked(url, path, { body, ...(key !== undefined && { key }) })
  const { group_id } = await post('/v1/manage/group', { name: 'Team', monthly_limit: 10 })
  const labels = { team: 'one' }
  const limits = { requests_per_minute: 100 }
  const key = await post('/v1/manage/apikey', { name: 'web', monthly_limit: 5, group_id, labels, limits })
  await post('/v1/manage/org/credit', { amount: 20 })
  await post('/v1/manage/alias', { name: 'best', target: 'demo/echo' })
  await post('/v1/manage/policy', { id: 'both', sort: 'weighted', targets: ['demo/echo', 'demo/thinker'] })
  const secret = String(key.api_key)
  const { id } = await post('/v1/responses', { model: 'best', input: 'Hello' }, secret)
  await post('/v1/embeddings', { model: 'demo/vectors', input: 'Hello' }, secret)
  return { secret, key: String(key.api_key_id), response: String(id) }
}

/** What is there, as the API gives it. Members that a later version adds are left out. */
async function stateOf(url: string, { secret, key, response }: Made) {
  const get = (path: string, own?: string) => asked(url, path, own === undefined ? {} : { key: own })
  const rows = (list: unknown) => list as Record<string, unknown>[]
  const picked = (row: Record<string, unknown>, ...names: string[]) => names.map((name) => row[name])
  const [found, groups, aliases, policies, calls, org, audit, stored] = await Promise.all([
    get(`/v1/manage/apikey/${key}`),
    get('/v1/manage/group'),
    get('/v1/manage/alias'),
    get('/v1/manage/policy'),
    get('/v1/manage/calls'),
    get('/v1/manage/org'),
    get('/v1/manage/audit'),
    get(`/v1/responses/${response}`, secret),
  ])
  return {
    key: picked(found, 'id', 'name', 'monthly_limit', 'monthly_spend', 'labels', 'limits', 'group', 'state'),
    groups: rows(groups.groups).map((row) => picked(row, 'id', 'name', 'monthly_limit', 'monthly_spend')),
    aliases: rows(aliases.aliases).map((row) => picked(row, 'name', 'target')),
    policies: rows(policies.policies).map((row) => picked(row, 'id', 'sort', 'targets')),
    calls: rows(calls.calls).map((row) => picked(row, 'id', 'at', 'model', 'cost', 'input_tokens', 'outcome')),
    org: picked(org, 'id', 'name', 'balance'),
    audit: rows(audit.entries).map((row) => picked(row, 'id', 'at', 'action', 'subject')),
    stored: picked(stored, 'id', 'status', 'output', 'usage'),
  }
}

async function textOf(url: string, key: string, body: object): Promise<string> {
  return JSON.stringify((await asked(url, '/v1/responses', { body: { model: 'both', ...body }, key })).output)
}

async function asked(
  url: string,
  path: string,
  { body, key = testKey }: { body?: object; key?: string } = {},
): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

const envOf = (folder: string) => ({
  PATH: process.env.PATH,
  HOME: folder,
  INFERENCE_ROUTER_ADMIN_KEY: testKey,
  LOG_LEVEL: 'warn',
})

async function started([command, ...args]: readonly [string, ...string[]], folder: string) {
  const child: ChildProcess = spawn(command, [...args, 'serve'], {
    cwd: folder,
    env: envOf(folder),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  let printed = ''
  const url = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        printed += text
        const found = /serves at (http:\S+)\/v1/.exec(printed)?.[1]
        if (found) resolve(found)
      })
    }
    ended.then((code) => reject(new Error(`it ended with ${code}: ${printed}`)))
  })
  return {
    url: await within(60_000, 'the start', url),
    async end() {
      child.kill('SIGTERM')
      return await within(60_000, 'the end', ended)
    },
  }
}

function run([command, ...args]: readonly [string, ...string[]], folder: string, ...more: string[]) {
  const options = { cwd: folder, env: envOf(folder), encoding: 'utf8', timeout: 60_000 } as const
  const { status, stdout, stderr } = spawnSync(command, [...args, ...more], options)
  return { status, stdout, stderr }
}
