import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { type Router, type RouterOptions, StartRefused, startRouter } from '../app/router.ts'
import { splitModel } from '../core/names.ts'
import { type FileProblem, formatProblem } from '../manifest/check/problem.ts'
import { formerNamesIn, logFormat, logLevels, openLog } from '../observe/log.ts'
import { lateFlags } from '../runtime/restart.ts'
import {
  leaveThreadsTheirSizes,
  limitYoungGeneration,
  restoreStartFlags,
  usualMb,
} from '../runtime/young-generation.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { fileProblemLine, type Out, parseArguments, runCommand, UsageError } from './command.ts'
import { locateConfig } from './read-config.ts'
import { earlierFiles } from './read-snapshot.ts'

/** The text of `inference-router serve --help`. */
export const help = `Runs the server.

  inference-router serve [--config FILE] [--port N] [--takeover] [--strict-files]

  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --port N        listen here instead of at server.port; 0 takes any free port
  --takeover      take over from a router that runs with the same database and was started with --takeover as well:
                  it hands over at once, finishes its calls and exits; without such a router, start as usual
  --strict-files  refuse to start, and to load any change later, while one file has an error; otherwise a manifest,
                  catalog file or plugin with an error is left out, or stays as it was, and the others are in use

The first start creates the database, an organization and a key with full permissions, and prints the key once; if
INFERENCE_ROUTER_ADMIN_KEY is set, its value (20 characters or more) is the key and is not printed.
SIGTERM and SIGINT refuse new calls, finish running ones for up to 30 seconds, settle all and exit; a second one exits at once.
LOG_LEVEL is the level of the log on standard error: debug, info (the default), warn, error, silent; its components (call,
files, ledger, routing, worker, plugin) can have levels of their own: info,call=warn. LOG_FORMAT is
pretty, one short line for each call (the default), json, or auto, which is json unless standard error is a terminal.
`

/** Maximum time for which running calls may go on after a signal to stop. */
const drainMs = 30_000

/** Time after which the start is over. */
const settledMs = 2_000

/** Interval at which the young generation is checked while the process starts. */
const lookMs = 20

const options = {
  config: { type: 'string' },
  port: { type: 'string' },
  takeover: { type: 'boolean' },
  'strict-files': { type: 'boolean' },
} as const

/** Runs `inference-router serve` until a signal arrives. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, () => {
    const { text, flag } = parseArguments(args, { options })
    const port = portFrom(text('port'))
    const configPath = locateConfig(text('config'))
    const flags = { takeOver: flag('takeover'), strictFiles: flag('strict-files') }
    return serve({ configPath, ...flags, ...(port !== undefined && { port }) }, out)
  })
}

async function serve(
  options: Pick<RouterOptions, 'configPath' | 'port' | 'takeOver' | 'strictFiles'>,
  out: Out,
): Promise<number> {
  leaveThreadsTheirSizes()
  // No request runs yet.
  const starting = setInterval(limitYoungGeneration({ begun: 0, size: 0, bodyBytes: 0 }, usualMb), lookMs)
  let router: Router
  try {
    const { LOG_LEVEL, LOG_FORMAT } = process.env
    const log = openLog({ levels: logLevels(LOG_LEVEL), format: logFormat(LOG_FORMAT) })
    for (const message of formerNamesIn(LOG_LEVEL)) log.warn(message)
    const earlier = { cache: earlierFiles(process.env) }
    router = await startRouter({ ...options, env: process.env, log, earlier })
  } catch (error) {
    if (error instanceof StartRefused) {
      for (const problem of error.problems) out.stderr(`${formatProblem(problem)}\n`)
    }
    out.stderr(`${explain(error)}\n`)
    return 1
  } finally {
    clearInterval(starting)
  }
  router.limitMemory()
  const stopSignal = untilSignal()
  out.stdout(welcome(router))
  out.stderr(problemNotice(router.problems()))
  setTimeout(() => settle(router), settledMs).unref()
  const isSignal = await Promise.race([stopSignal.then(() => true), router.retired.then(() => false)])
  out.stderr(
    isSignal ? 'Stopping: new calls are refused, running calls may finish.\n' : 'Another process has taken over.\n',
  )
  try {
    await router.stop(drainMs)
    return 0
  } catch (error) {
    out.stderr(`${(error as Error).message}\n`)
    return 1
  }
}

/**
 * Settles the process after its start. Compiled code is kept now, because a process that is killed leaves none behind; and memory is that
 * of a server.
 */
function settle(router: Router): void {
  // Code is kept under the flags that the next start begins with.
  restoreStartFlags()
  flushCompileCache()
  for (const flag of lateFlags(router.threads().length || 1)) setFlagsFromString(flag)
  router.settle()
}

function portFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw new UsageError(`--port takes a number from 0 to 65535, not '${text}'.`)
}

function welcome({ url, manageUrl, firstKey, hasConsole, snapshot }: Router): string {
  const manages = manageUrl === url ? '' : `The management API is at ${manageUrl}/v1/manage\n`
  const serves = `inference-router serves at ${url}/v1\n${manages}`
  const console = `${manageUrl}/console/`
  if (firstKey === undefined) return hasConsole ? `${serves}The console is at ${console}\n` : serves
  const [notice, inShell, signIn] =
    'variable' in firstKey
      ? [`Your first key is the one in ${firstKey.variable}.`, `$${firstKey.variable}`, '']
      : // Browsers send nothing of what follows the #.
        [`Your first key, displayed only once:\n\n  ${firstKey.secret}`, firstKey.secret, `#key=${firstKey.secret}`]
  const look = hasConsole ? `Open the console in a browser:\n\n  ${console}${signIn}\n\n` : ''
  return `${serves}
${notice}

${look}${trial(url, inShell, snapshot())}
`
}

/** A model that answers without an account. */
const trialModel = 'demo/echo'

/** Returns a first call that works with the providers that there are. */
function trial(url: string, key: string, { providers }: Snapshot): string {
  if (providers.has(splitModel(trialModel)?.provider ?? '')) {
    return `Try it; the demo provider needs no account:

  curl ${url}/v1/chat/completions \\
    -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\
    -d '{"model": "${trialModel}", "messages": [{"role": "user", "content": "Hello"}]}'
`
  }
  const isReady = [...providers.values()].some(({ missing }) => missing.length === 0)
  const need = `No provider is ready yet: set the variable of one, such as OPENAI_API_KEY, in the environment or in .env beside the
configuration, or name one that needs none: providers: { demo: {} }. Then start again.

`
  return `${isReady ? '' : need}See which models you can call:

  curl ${url}/v1/models -H "Authorization: Bearer ${key}"
`
}

/** Returns the problems of files that are not in use, for whoever starts the router; empty where there are none. */
function problemNotice(problems: readonly FileProblem[]): string {
  if (problems.length === 0) return ''
  const [are, files] = problems.length === 1 ? ['is', 'error'] : ['are', 'errors']
  const lines = problems.map((problem) => `  ${fileProblemLine(problem)}`)
  return `There ${are} ${problems.length} ${files} in files; all other files are in use:\n\n${lines.join('')}\n`
}

function explain(error: unknown): string {
  const { code, message, port, address } = error as NodeJS.ErrnoException & { port?: number; address?: string }
  if (code === 'EADDRINUSE') {
    return `${address}:${port} is in use by another process: stop it, or choose another port with --port, server.port or manage.port.`
  }
  if (code === 'EACCES') return `Listening at ${address}:${port} is not allowed: choose a port above 1023.`
  return message
}

/** Resolves with the first SIGTERM or SIGINT; a second one ends the process at once. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1))
        resolve()
      })
    }
  })
}
