import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { version } from '../../src/cli/version.ts'
import { serverFlags } from '../../src/runtime/restart.ts'
import { slow } from '../helpers/slow.ts'

const main = join(import.meta.dirname, '../../src/start.js')
/** Tells what the process was started with, each time it starts. */
const tell =
  'console.error(JSON.stringify({ pid: process.pid, flags: process.execArgv, args: process.argv.slice(2), cached: "NODE_COMPILE_CACHE" in process.env }))'
const preload = ['--import', `data:text/javascript,${encodeURIComponent(tell)}`]

type Start = { pid: number; flags: string[]; args: string[]; cached: boolean }

const { NODE_COMPILE_CACHE: _, ...env } = process.env

async function starts(args: string[], { flags = preload, channel = false, options = {} } = {}): Promise<Start[]> {
  const child = channel
    ? fork(main, args, { execArgv: flags, silent: true, env })
    : spawn(process.execPath, [...flags, main, ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...env, ...options },
      })
  const [output, errors] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  expect(output).toContain('inference-router')
  const lines = errors.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    expect(line).toMatch(/^\{.*\}$/)
    const start: Start = JSON.parse(line)
    expect(start.pid).toBe(child.pid)
    return start
  })
}

test.skipIf(process.platform === 'win32')(
  'a server is started again once, in the same process, with its own flags',
  async () => {
    const [first, second, ...others] = await starts(['serve', '--help'])
    expect(others).toEqual([])
    expect(first).toMatchObject({ flags: preload, args: ['serve', '--help'], cached: false })
    expect(second).toMatchObject({
      flags: [...serverFlags, ...preload],
      args: ['serve', '--help'],
      cached: true,
    })
  },
)

test('what earlier starts have kept is run without the compiler of TypeScript', async () => {
  const cache = mkdtempSync(join(tmpdir(), 'restart-'))
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }))
  const tellCompiler = `process.on('exit', () => console.log(process.moduleLoadList.some((name) => name.includes('amaro'))))`
  const preloaded = ['--import', `data:text/javascript,${encodeURIComponent(tellCompiler)}`]
  const run = async () => {
    const child = spawn(process.execPath, [...preloaded, main, '--version'], {
      env: { ...env, INFERENCE_ROUTER_CACHE: cache },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return (await text(child.stdout)).trim().split('\n')
  }
  expect(await run()).toEqual([version, 'true'])
  expect(await run()).toEqual([version, 'false'])
})

test('a server with a channel to its parent, or with all such flags, is not', slow, async () => {
  expect(await starts(['serve', '--help'], { channel: true })).toHaveLength(1)
  const flags = ['--max_semi_space_size=4', '--memory-reducer', '--v8-pool-size=4', ...preload]
  expect(await starts(['serve', '--help'], { flags })).toMatchObject([{ flags }])
})

test.skipIf(process.platform === 'win32')('flags that were given stay as they are', slow, async () => {
  const flags = ['--max-semi-space-size=4', ...preload]
  const rest = serverFlags.filter((flag) => !flag.includes('semi-space'))
  expect(await starts(['serve', '--help'], { flags })).toMatchObject([{ flags }, { flags: [...rest, ...flags] }])
  const options = { NODE_OPTIONS: '--no-warnings --max-semi-space-size=4' }
  expect(await starts(['serve', '--help'], { options })).toMatchObject([
    { flags: preload },
    { flags: [...rest, ...preload] },
  ])
})

test('other commands are not', async () => {
  expect(await starts(['models', '--help'])).toHaveLength(1)
})
