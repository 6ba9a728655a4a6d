import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../../tools/catalog/catalog.ts'
import { ran as printedBy } from './running.ts'

const catalog = `provider: acme
defaults: { api: chat }
models:
  big:
    pricing: { input: 2e-6, output: 8e-6 }
  small:
    pricing: { input: 1e-6, output: 4e-6 }
`
const list = {
  acme: { models: { big: { cost: { input: 2.5, output: 8 } }, small: { cost: { input: 1, output: 5 } } } },
}
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'catalog-'))
  mkdirSync(join(folder, 'catalog'))
  writeFileSync(join(folder, 'config.yaml'), 'folders: { catalog: catalog }')
  writeFileSync(join(folder, 'list.json'), JSON.stringify(list))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function ran(...args: string[]) {
  writeFileSync(join(folder, 'catalog/acme.yaml'), catalog)
  const printed = await printedBy(run, ...args, '--config', join(folder, 'config.yaml'))
  return { ...printed, file: readFileSync(join(folder, 'catalog/acme.yaml'), 'utf8') }
}

const from = () => ['--from', join(folder, 'list.json')]

test('diff shows both sides, as a table and as JSON', async () => {
  const shown = await ran('diff', ...from())
  expect(shown.stdout).toBe(`MODEL       FIELD         HERE   THERE
acme/big    input_price   2 $/M  2.5 $/M
acme/small  output_price  4 $/M  5 $/M

2 models compared with models_dev, 2 differences; 0 models only in the catalog, 0 only in the list
`)
  const json = JSON.parse((await ran('diff', ...from(), '--json', '--model', 'b*')).stdout)
  expect(json.differences).toEqual([
    { provider: 'acme', model: 'big', field: 'input_price', ours: 2e-6, theirs: 2.5e-6 },
  ])
})

test('update prints a diff that git applies, and writes only when it is told to', async () => {
  const printed = await ran('update', ...from(), '--field', 'input_price')
  expect([printed.code, printed.file]).toEqual([0, catalog])
  const work = join(folder, 'work')
  mkdirSync(join(work, 'catalog'), { recursive: true })
  writeFileSync(join(work, 'catalog/acme.yaml'), catalog)
  const patch = printed.stdout.replaceAll(/^(---|\+\+\+) ([ab])\/.*$/gm, '$1 $2/catalog/acme.yaml')
  execFileSync('git', ['apply', '-'], { cwd: work, input: patch, stdio: ['pipe', 'pipe', 'pipe'] })
  const written = await ran('update', ...from(), '--field', 'input_price', '--write')
  expect(written.stdout).toBe('')
  expect(written.file).toBe(catalog.replace('input: 2e-6', 'input: 2.5e-6'))
  expect(readFileSync(join(work, 'catalog/acme.yaml'), 'utf8')).toBe(written.file)
})

test('a list is read from an address as well', async () => {
  const endless = new Readable({ read: () => endless.push(Buffer.alloc(1e6, ' ')) })
  const server = createServer(({ url }, response) => {
    if (url === '/endless') pipeline(endless, response, () => {})
    else response.end(JSON.stringify(list))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  try {
    const { port } = server.address() as AddressInfo
    expect((await ran('diff', '--from', `http://127.0.0.1:${port}/api.json`)).stdout).toContain('2 differences')
    const { code, stderr } = await ran('diff', '--from', `http://127.0.0.1:${port}/endless`)
    expect([code, stderr]).toEqual([1, expect.stringContaining('the answer has more than 50 MB')])
  } finally {
    server.close()
  }
})

test('what cannot be read, or is not there, is said', async () => {
  writeFileSync(join(folder, 'wrong.json'), '{"a": 1}')
  const errors = await Promise.all([
    ran('diff'),
    ran('diff', '--from', join(folder, 'wrong.json')),
    ran('diff', '--from', join(folder, 'none.json')),
    ran('diff', ...from(), '--provider', 'nobody'),
    ran('diff', ...from(), '--field', 'colour'),
    ran('merge'),
  ])
  expect(errors.map(({ code, stderr }) => [code, stderr.split('\n')[0]])).toEqual([
    [2, 'name the list with --from: a file or an https URL'],
    [1, expect.stringContaining('This is not a list of models that can be read')],
    [1, expect.stringContaining('no such file')],
    [1, expect.stringContaining('There is no such provider')],
    [
      2,
      "there is no field 'colour'; fields: input_price, output_price, cached_price, context_window, max_output_tokens",
    ],
    [2, "unknown action 'merge'; actions: diff, update"],
  ])
})
