/** The whole router in this process, with a provider for each wire format: its event loop is watched. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { startRouter } from '../src/app/router.ts'
import { announce } from './measured.ts'

const upstream = process.env.BENCH_UPSTREAM ?? ''
const folder = mkdtempSync(join(tmpdir(), 'bench-router-'))
const logs = mkdtempSync(join(tmpdir(), 'bench-router-log-'))
const manifest = (slug: string, dialect: string, url: string, more = '') => `slug: ${slug}
name: Bench
base_url: ${url}
auth: { scheme: bearer, secret: "\${BENCH_SECRET:-secret}" }
dialect: ${dialect}
models:
  bench:
    api: chat
    context_window: 128000
    max_output_tokens: 4096
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]
${more}`
mkdirSync(join(folder, 'providers'))
const heard = '  heard: { api: transcription, other_prices: { per_second: 0.0001 } }\n'
writeFileSync(join(folder, 'providers/same.yaml'), manifest('same', 'openai-chat', `${upstream}/v1`, heard))
writeFileSync(join(folder, 'providers/mapped.yaml'), manifest('mapped', 'anthropic-messages', upstream))
writeFileSync(join(folder, 'providers/responses.yaml'), manifest('responses', 'openai-responses', `${upstream}/v1`))
writeFileSync(join(folder, 'providers/lines.yaml'), manifest('lines', 'ollama', upstream))
writeFileSync(join(folder, 'providers/frames.yaml'), manifest('frames', 'bedrock-converse', upstream))
const asArray = 'endpoints: { chat: { stream: { format: json-array } } }\n'
writeFileSync(join(folder, 'providers/items.yaml'), manifest('items', 'gemini', upstream, asArray))
writeFileSync(join(folder, 'config.yaml'), 'server: { port: 0 }\nstore: { url: "sqlite:data/router.sqlite" }\n')

const router = await startRouter({
  configPath: join(folder, 'config.yaml'),
  env: { ...process.env, INFERENCE_ROUTER_ADMIN_KEY: process.env.BENCH_KEY },
  log: pino({ level: 'info' }, pino.destination({ dest: join(logs, 'log'), sync: true })),
})
announce(router.url, { watch: true })
