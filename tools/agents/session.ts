import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Client, Command, Place } from './clients.ts'
import { words } from './script.ts'

/** The output of a session, and its exit status where it ended by itself. */
export type Session = { output: string; status: number | undefined; ms: number }

/** The folder with the installed clients, and the longest session. */
export type SessionSettings = { folder: string; maxMs: number }

/** Runs a client once, in an empty home and with an environment of its own. */
export async function runSession(client: Client, place: Place, { folder, maxMs }: SessionSettings): Promise<Session> {
  const work = join(place.home, 'work')
  mkdirSync(work, { recursive: true })
  writeFileSync(join(work, 'note.txt'), `${words.file}\n`)
  const begun = Date.now()
  let session: Session = { output: '', status: undefined, ms: 0 }
  try {
    for (const command of client.prepare(place)) {
      const { output, status } = await run(command, { home: place.home, work, folder, maxMs })
      session = { output: session.output + output, status, ms: Date.now() - begun }
      if (status !== 0) break
    }
  } finally {
    endRest(place.home)
  }
  return session
}

function run(
  { program, args, env }: Command,
  { home, work, folder, maxMs }: { home: string; work: string } & SessionSettings,
): Promise<{ output: string; status: number | undefined }> {
  const child = spawn(join(folder, 'node_modules/.bin', program), args, {
    cwd: work,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
      HOME: home,
      TERM: 'dumb',
      NO_COLOR: '1',
      CI: 'true',
      ...env,
    },
  })
  const { pid } = child
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (output += piece))
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      if (pid) end(-pid)
      output += `\n(no end after ${maxMs / 1_000} s)`
    }, maxMs)
    const finish = (status: number | undefined) => {
      clearTimeout(timer)
      resolve({ output, status })
    }
    child.once('error', ({ message }) => {
      output += message
      finish(undefined)
    })
    child.once('exit', (code) => setTimeout(() => finish(code ?? undefined), 100))
  })
}

/** Ends what a client left running: processes that have its home. */
function endRest(home: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      if (environment.includes(`HOME=${home}`)) end(Number(pid))
    } catch {
      // It has ended meanwhile, or belongs to someone else.
    }
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

/** Returns whether a session ended with all words of the tools. */
export function isComplete({ output, status }: Session): boolean {
  return status === 0 && !output.includes('FAILED: ') && Object.values(words).every((word) => output.includes(word))
}

/** Returns the last words of a session that is not complete. */
export function lastWords({ output }: Session): string {
  const failed = /FAILED: [^\n]*/.exec(output)?.[0]
  if (failed) return failed
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  return lines.slice(-3).join(' / ')
}
