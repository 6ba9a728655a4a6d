import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serverFlags, serverVariables } from '../../src/runtime/restart.ts'
import type { Gateway } from './clients/client.ts'
import { manifestOf } from './setup.ts'

/** This router as a process of its own, whose only provider is a simulator: `steady/<model>`. */
export type RouterProcess = {
  gateway: Gateway
  folder: string
  /** Writes the manifest of the provider with one model more, of this name. */
  change(model: string): void
  /** How often it has read its files again. */
  reloads(): number
  /** Tells it to stop; its exit code, or the signal that ended it. */
  stop(): Promise<number | string>
  /** Kills it where it still runs, and removes its folder. */
  end(): void
}

const key = 'ir-key-of-the-wall-on-loopback'
const main = join(import.meta.dirname, '../../src/main.ts')
const settings = {
  server: { host: '127.0.0.1', port: 0 },
  store: { url: 'sqlite:data/router.sqlite' },
  folders: {},
}

/** Starts it with the simulator of this address; a call of its callers may take `limitMs`. Throws if it ends instead. */
export async function startProcess(simulator: string, limitMs: number): Promise<RouterProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'wall-process-'))
  mkdirSync(join(folder, 'providers'))
  const change = (model: string) => writeFileSync(join(folder, 'providers/steady.yaml'), steady(simulator, model))
  change('first')
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(settings))
  const child = spawn(process.execPath, [...serverFlags, main, 'serve', '--config', join(folder, 'config.yaml')], {
    env: {
      ...process.env,
      ...serverVariables,
      INFERENCE_ROUTER_ADMIN_KEY: key,
      LOG_LEVEL: 'info,call=silent',
      LOG_FORMAT: 'json',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
  const output = outputOf(child)
  const end = () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const url = await output.url(exited)
    const stop = async () => {
      child.kill('SIGTERM')
      return await exited
    }
    return { gateway: { url, key, limitMs }, folder, change, reloads: output.reloads, stop, end }
  } catch (error) {
    end()
    throw error
  }
}

function outputOf(child: ChildProcess) {
  let text = ''
  const served = Promise.withResolvers<string>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      const url = /serves at (http:\S+)\/v1/.exec(text)?.[1]
      if (url !== undefined) served.resolve(url)
    })
  }
  return {
    reloads: () => text.split('"msg":"reloaded"').length - 1,
    url: (exited: Promise<number | string>) =>
      Promise.race([
        served.promise,
        exited.then((code) => {
          throw new Error(`The router ended with ${code}: ${text}`)
        }),
      ]),
  }
}

function steady(simulator: string, model: string): string {
  const entry = `  ${model}: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }\n`
  return `slug: steady\n${manifestOf('openai-chat', simulator, { time: 1, window: 8_192 })}${entry}`
}
