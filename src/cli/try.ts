import { basename, resolve } from 'node:path'
import { chat } from '../api/chat/api.ts'
import { namesInBody } from '../api/wire-fields.ts'
import { speaksSameFormat } from '../call/attempt/choose-translation.ts'
import { writtenRequest } from '../call/kinds/try.ts'
import { RouterError } from '../core/errors.ts'
import type { FoldFacts } from '../core/fold.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { readStream, triedEvents, triedReply, triedRequest } from '../manifest/check/examples.ts'
import { hasErrors } from '../manifest/check/problem.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Example, Layer } from '../manifest/read/layer.ts'
import { readReply } from '../manifest/run/read-reply.ts'
import { writeRequest } from '../manifest/run/translate.ts'
import { servedBy, targetFacts } from '../manifest/target.ts'
import { type Config, loadConfig } from '../snapshot/config.ts'
import { pathsOf } from '../snapshot/folders.ts'
import { readSse } from '../wire/sse.ts'
import { CommandError, jsonText, type Out, parseArguments, problemLine, runCommand, UsageError } from './command.ts'
import { entryOf, findManifest, loadOne, mappingsIn, type PlacedMapping, readInput, treatmentOf } from './load-one.ts'
import { locateConfig } from './read-config.ts'

/** The text of `inference-router try --help`. */
export const help = `Shows the input and the output of a mapping side by side. Nothing is sent anywhere.

  inference-router try <manifest> [--request FILE] [--reply FILE] [--stream FILE] [options]

  <manifest>      a file, the slug of a provider, or the name of a dialect
  --request FILE  a request, neutral or of the chat API: shows the provider's request, and the dropped fields
  --reply FILE    a provider's whole response: shows the neutral reply
  --stream FILE   a provider's stream (server-sent events, one JSON per line, or a list): shows each event's neutral events
  --explain       print the JavaScript of each mapping of the manifest and its dialect instead
  --model NAME    the provider's model id, where the input has none
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON

Without an input, the examples of the manifest are run. Files are JSON or YAML.
`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const options = { request: text, reply: text, stream: text, model: text, config: text, json: flag, explain: flag }

/** Runs `inference-router try`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals, text, flag } = parseArguments(args, { options, positionals: 1 })
    const [manifest] = positionals
    if (manifest === undefined) throw new UsageError('name a manifest: try <manifest>')
    const { config, problems: unusable } = await loadConfig(locateConfig(text('config')), process.env)
    for (const problem of unusable) out.stderr(problemLine(problem))
    if (!config) return 1
    const file = findManifest(manifest, config)
    if (file === undefined)
      throw new UsageError(
        `There is no manifest ${manifest}, as a file or in ${pathsOf(config.folders.providers).join(' or ')}.`,
      )
    return await failing(async () => {
      const { loaded, problems } = await loadOne(await readInput(file), config, process.env)
      for (const problem of problems) out.stderr(problemLine(problem))
      if (!loaded || hasErrors(problems)) return 1
      if (flag('explain')) {
        const explained = mappingsIn(loaded.layers).map(explanation)
        out.stdout(flag('json') ? jsonText(explained) : explained.map(explanationText).join('\n'))
        return 0
      }
      const files = { request: text('request'), reply: text('reply'), stream: text('stream'), model: text('model') }
      const trials = await trialsOf(files, loaded, config)
      out.stdout(flag('json') ? jsonText(trials) : trials.map(trialText).join('\n'))
      return 0
    })
  })
}

/** Reports every error of an input or a mapping as a message for the user. */
async function failing(run: () => Promise<number>): Promise<number> {
  try {
    return await run()
  } catch (thrown) {
    throw new CommandError((thrown as Error).message)
  }
}

type Explained = { file: string; line: number; name: string; compiled: boolean; construct?: string; code: string }

function explanation({ file, name, mapping, place }: PlacedMapping): Explained {
  return { file, line: place().line, name, ...treatmentOf(mapping), code: mapping.explain() }
}

function explanationText({ file, line, name, code }: Explained): string {
  return `── ${name} (${basename(file)}:${line})\n${code}\n`
}

type Loaded = { provider: Provider; layers: Layer[] }

async function trialsOf(
  { request, reply, stream, model }: { readonly [name: string]: string | undefined },
  { provider, layers }: Loaded,
  config: Config,
): Promise<Trial[]> {
  const trials: Trial[] = []
  if (request !== undefined) trials.push(await tryRequest(provider, await objectIn(request), model, config))
  const served = servedBy(provider, model ?? '')
  if (reply !== undefined) trials.push(await tryReply(served, await objectIn(reply)))
  if (stream !== undefined)
    trials.push(await tryStream(served, await framesIn(stream, served.chat?.stream.data ?? 'json')))
  if (trials.length > 0) return trials
  const examples = layers.flatMap((layer) => layer.examples.map((example) => ({ example, provider })))
  for (const [index, variant] of (layers.at(-1)?.variants ?? []).entries()) {
    const served = provider.variants?.[index]?.provider ?? provider
    examples.push(...(variant.layers.at(-1)?.examples ?? []).map((example) => ({ example, provider: served })))
  }
  if (examples.length === 0)
    throw new Error('There are no examples to try: name an input with --request, --reply or --stream.')
  for (const { example, provider: given } of examples) {
    if (example.operation) {
      trials.push(...(await tryOperation(given, example)))
      continue
    }
    const tried: Trial[] = []
    const served = servedBy(given, model ?? example.request?.model ?? '')
    if (example.request) tried.push(await tryRequest(served, example.request as JsonObject, model, config))
    if (example.answers) tried.push(await tryReply(served, example.answers))
    if (example.events) tried.push(await tryStream(served, example.events))
    trials.push(...tried.map((trial) => ({ ...trial, name: `${example.name}: ${trial.name}` })))
  }
  return trials
}

async function tryRequest(
  named: Provider,
  input: JsonObject,
  givenModel: string | undefined,
  config: Config,
): Promise<Trial> {
  const isChat = [input.messages].flat().some((message) => isObject(message) && message.content !== undefined)
  const read = isChat
    ? chat.read({ model: givenModel ?? 'model', ...input })
    : ({ model: 'model', messages: [], ...input, origin: { api: 'chat', body: {} } } as unknown as NeutralRequest)
  const prefix = `${named.slug}/`
  const model = givenModel ?? (read.model.startsWith(prefix) ? read.model.slice(prefix.length) : read.model)
  const entry = await entryOf(named, model, config)
  const provider = servedBy(named, model, { request: read, entry })
  const target = { model, ...(entry && { entry }) }
  // Like the router: a body of the provider's own format is edited, any other is rebuilt.
  if (isChat && speaksSameFormat({ provider }, chat)) {
    const { body, dropped } = await writtenRequest({ provider, ...target }, read, { clientApi: chat })
    const lost = dropped.flatMap((field) => namesInBody(chat.wireNames(field), input))
    return { name: 'request (same format: edited)', steps: [{ input, output: body }], notes: { dropped: lost } }
  }
  const { body, dropped: lost } = await writeRequest(provider, read, target)
  const dropped = isChat ? lost.map((field) => chat.wireNames(field)[0] ?? field) : lost
  return { name: 'request', steps: [{ input, output: body }], notes: { dropped } }
}

async function tryReply(provider: Provider, answer: JsonObject): Promise<Trial> {
  const target = targetFacts(provider, { model: '' })
  const { reply, error } = await readReply(provider, answer, foldFacts(provider), target)
  const means = reply as unknown as JsonObject
  const notes = { ...(error && { error: error as Json }), ...unlistedFinish(means) }
  return { name: 'reply', steps: [{ input: answer, output: means }], notes }
}

async function tryStream(provider: Provider, frames: readonly (JsonObject | string)[]): Promise<Trial> {
  const { events, complete, ...means } = await readStream(
    provider,
    frames,
    foldFacts(provider),
    targetFacts(provider, { model: '' }),
  )
  const steps = frames.map((input, index) => ({ input, output: events[index] ?? 'the end of the stream' }))
  return { name: 'stream', steps, notes: { means, complete, ...unlistedFinish(means) } }
}

/** Returns a hint for a word that the table of finish reasons lacks: it makes a failure of a reply that looks fine. */
function unlistedFinish({ finish, finish_raw }: JsonObject): { hint?: string } {
  if (finish !== 'error' || finish_raw === undefined) return {}
  return { hint: `the reply counts as failed: the table \`finish\` has no \`${finish_raw}\`, or calls it an error` }
}

/** Returns fixed values, so that the same input gives the same output. */
function foldFacts({ signer }: Provider): FoldFacts {
  return { signer, newId: () => 'made-up-id', now: () => 0 }
}

async function objectIn(file: string): Promise<JsonObject> {
  const { value, problems } = await readInput(file)
  const [problem] = problems
  if (problem) throw new Error(problemLine(problem).trim())
  if (!isObject(value)) throw new RouterError('invalid_request', `${file} must contain one JSON object.`)
  return value
}

/** Reads events as `readStream` takes them: an event name that was on the wire stays beside its data. */
async function framesIn(file: string, form: 'json' | 'text'): Promise<(JsonObject | string)[]> {
  const { text, value } = await readInput(file)
  if (Array.isArray(value)) return value as (JsonObject | string)[]
  if (!/^(?:data|event):/m.test(text)) {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    return lines.map((line, index) => parsed(line, `${resolve(file)}:${index + 1}`))
  }
  const frames: (JsonObject | string)[] = []
  const reader = readSse()
  for (const { event, data } of [...reader.take(Buffer.from(text)), ...reader.end()]) {
    const payload = form === 'json' && data.trimStart().startsWith('{') ? parsed(data, file) : data
    frames.push(event === undefined ? payload : { event, data: payload })
  }
  return frames
}

function parsed(text: string, where: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (!isObject(value)) throw new Error(`${where}: an event must be a JSON object.`)
  return value
}

function trialText({ name, steps, notes }: Trial): string {
  const pairs = steps.map(({ input, output }) => sideBySide(input, output, process.stdout.columns))
  const noteTexts = Object.entries(notes).map(([note, value]) => `${note}: ${JSON.stringify(value, null, 2)}\n`)
  return `── ${name}\n${pairs.join('\n')}${noteTexts.join('')}`
}

/** One input and the mapping's output; `notes` are further results, by name. */
type Trial = { name: string; steps: { input: Json; output: Json }[]; notes: { [name: string]: Json } }

/** Tries an example of an endpoint besides chat. */
async function tryOperation(given: Provider, example: Example): Promise<Trial[]> {
  const { name, request, answers, events } = example
  const model = request?.model ?? ''
  const provider = servedBy(given, model)
  const trial = { provider, example, facts: targetFacts(provider, { model }) }
  const trials: Trial[] = []
  if (request) {
    const { body, query, dropped } = await triedRequest(trial)
    const notes = { dropped, ...(Object.keys(query).length > 0 && { query }) }
    trials.push({ name: `${name}: request`, steps: [{ input: request as JsonObject, output: body }], notes })
  }
  if (answers) {
    const steps = [{ input: answers, output: await triedReply(trial, answers) }]
    trials.push({ name: `${name}: reply`, steps, notes: {} })
  }
  if (events) {
    const steps = [{ input: events, output: await triedEvents(trial, events) }]
    trials.push({ name: `${name}: stream`, steps, notes: {} })
  }
  return trials
}

/** The width when that of the terminal is unknown. Characters. */
const usualWidth = 120

/** Writes two values as JSON, the left one beside the right one; long lines are broken. */
export function sideBySide(left: Json, right: Json, width = usualWidth): string {
  const half = Math.max(20, Math.floor((width - 3) / 2))
  const [one, other] = [left, right].map((value) => linesOf(value, half)) as [string[], string[]]
  const count = Math.max(one.length, other.length)
  const rows = Array.from({ length: count }, (_, row) =>
    `${(one[row] ?? '').padEnd(half)} │ ${other[row] ?? ''}`.trimEnd(),
  )
  return `${rows.join('\n')}\n`
}

function linesOf(value: Json, width: number): string[] {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return text.split('\n').flatMap((line) => line.match(new RegExp(`.{1,${width}}`, 'gu')) ?? [''])
}
