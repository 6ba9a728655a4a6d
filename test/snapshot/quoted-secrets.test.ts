import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { slow } from '../helpers/slow.ts'
import { folderOf, plainDialect } from '../manifest/files.ts'

/** What looks like a key, wherever it stands. */
const key = 'sk-live-4fB9x2Qw7Zr1Lm8Nk5Tp'
/** What can only be known by its place. */
const password = 'correct horse; battery staple'

const manifest = `slug: acme
name: Acme
base_url: http://127.0.0.1:9/v1
auth: { scheme: bearer, secret: "\${ACME_KEY}" }
headers: { x-team: "a" }
dialect: plain
timeouts: { connect: 1s }
unknown_models: refuse
models: { m: { api: chat, context_window: 1 } }
`

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()

async function problemsOf(files: { [path: string]: string }, env = {}, prepare: (folder: string) => void = () => {}) {
  const folder = folderOf({
    'config.yaml': '',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': manifest,
    ...files,
  })
  prepare(folder)
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), env, { known: shipped })
  if (snapshot) shipped = snapshot.sources
  return problems.map(formatProblem)
}

/** Nine letters of a secret say which it is, ten may say too much. */
function expectNothingOf(secret: string, problems: readonly string[]): void {
  for (let at = 0; at + 10 <= secret.length; at++) expect(problems.join('\n')).not.toContain(secret.slice(at, at + 10))
}

/** Every place of the manifest that has a value, and mistakes of YAML: with a key instead. */
const misplaced: string[] = [
  ...[...manifest.matchAll(/(?<=: )(?:"[^"]*"|[\w:/.]+)/g)].map(
    ({ index, 0: value }) => manifest.slice(0, index) + key + manifest.slice(index + value.length),
  ),
  ...manifest.split('\n').map((line) => manifest.replace(line, `${line}\n${key}`)),
  ...manifest.split('\n').map((line) => manifest.replace(line, `${key}: ${line}`)),
  ...['@', '*', '&', '!', '%', '`', '"', "'", '{', '[', '- ', '|', '\t', '? ', '>9'].flatMap((mark) => [
    manifest.replace('"${ACME_KEY}"', `${mark}${key}`),
    manifest.replace('"${ACME_KEY}"', `"\${ACME_KEY}" ${mark}${key}`),
    `${mark}${key}\n${manifest}`,
  ]),
  manifest.replace('${ACME_KEY}', `\${${key}`),
  manifest.replace('"${ACME_KEY}"', `"\\${key}"`),
  manifest.replace('secret:', `${key}: x, ${key}: y, secret:`),
]

test('the files without a mistake have no problem', slow, async () => {
  expect(await problemsOf({})).toEqual([])
})

test('a key that was pasted anywhere into a manifest is in no message', async () => {
  let found = 0
  for (const text of misplaced) {
    const problems = await problemsOf({ 'providers/acme.yaml': text })
    expectNothingOf(key, problems)
    found += problems.length
  }
  expect(found).toBeGreaterThan(misplaced.length / 2)
})

test.each([
  ['a secret in the file itself', manifest.replace('"${ACME_KEY}"', `"${password}"`)],
  ['a secret that is cut like a reference', manifest.replace('${ACME_KEY}', `\${${password}`)],
  ['a secret of the wrong scheme', manifest.replace('scheme: bearer', `scheme: ${password}`)],
  ['a secret instead of the authentication', manifest.replace(/auth: .*/, `auth: ${password}`)],
  ['a secret in a list', manifest.replace('"${ACME_KEY}"', `[${password}]`)],
  ['a secret as the headers', manifest.replace(/headers: .*/, `headers: ${password}`)],
  ['a password in the address', manifest.replace('http://', `ftp://me:${password}@`)],
  ['a secret that ends its quotes', manifest.replace('"${ACME_KEY}"', `"x" ${password}`)],
  ['a secret as an alias', manifest.replace('"${ACME_KEY}"', `*${password}`)],
  ['a secret as a tag', manifest.replace('"${ACME_KEY}"', `!${password}`)],
])('%s is not repeated', async (_, text) => {
  const problems = await problemsOf({ 'providers/acme.yaml': text })
  expect(problems.length).toBeGreaterThan(0)
  expectNothingOf(password, problems)
})

test.each([
  ['a header', 'providers/acme.yaml', manifest.replace('"a"', '"${V}"'), `${password}\u0001`],
  ['an address', 'providers/acme.yaml', manifest.replace('http://127.0.0.1:9/v1', '"${V}"'), password],
  ['a secret over the manifest', 'config.yaml', 'providers: { acme: { secret: "${V}" } }', `${password}\u0001`],
  ['the address of the database', 'config.yaml', 'store: { url: "${V}" }', `postgres://me:${password}@db/router`],
  ['a number', 'config.yaml', 'server: { port: "${V}" }', password],
  ['a size', 'config.yaml', 'server: { body_limit: "${V}" }', password],
  ['a policy', 'config.yaml', 'media: { schemes: ["${V}"] }', password],
])('the value of a variable that is used as %s is not repeated', async (_, file, text, value) => {
  const problems = await problemsOf({ [file]: text }, { V: value, ACME_KEY: 'x' })
  expect(problems.length).toBeGreaterThan(0)
  expectNothingOf(password, problems)
})

test.each([
  ['a list of users', `root:${password}:0:0::/root:/bin/sh\n`],
  ['an environment', `DATABASE_PASSWORD=${password}\nOTHER=${key}\n`],
  ['a note', `${password}\n${password}\n`],
  ['a private key', `-----BEGIN PRIVATE KEY-----\n${password}\n-----END PRIVATE KEY-----\n`],
  ['JSON', JSON.stringify([password, key])],
  ['a script', `#!/bin/sh\nexport KEY="${password}"\n`],
])('the contents of %s that a file of the folder links to are not repeated', async (_, contents) => {
  const outside = folderOf({ secret: contents })
  for (const file of ['providers/linked.yaml', 'providers/dialects/linked.yaml', 'catalog/linked.yaml']) {
    const problems = await problemsOf({ 'catalog/acme.yaml': 'provider: acme\nmodels: {}\n' }, {}, (folder) =>
      symlinkSync(join(outside, 'secret'), join(folder, file)),
    )
    expect(problems.length).toBeGreaterThan(0)
    expectNothingOf(password, problems)
    expectNothingOf(key, problems)
  }
})

test('a message names a folder or a file once, without the path of the machine', async () => {
  const problems = await problemsOf({ 'config.yaml': 'providers: { nobody: {} }' }, {}, (folder) =>
    symlinkSync(folder, join(folder, 'providers/linked.yaml')),
  )
  expect(problems).toHaveLength(2)
  for (const problem of problems) expect(problem.replace(/^\S+/, '')).not.toContain('/router-')
})

test('what people need to find a mistake is still said', async () => {
  const wrong = manifest
    .replace('connect: 1s', 'connect: soon')
    .replace('refuse', 'refus')
    .replace('context_window: 1', 'context_window: many')
  expect((await problemsOf({ 'providers/acme.yaml': wrong })).join('\n')).toMatch(
    /"soon"[\s\S]*"refus".*refuse[\s\S]*"many"/,
  )
})
