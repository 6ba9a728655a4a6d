import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { dataPath } from '../../test/helpers/optional-data.ts'
import type { Mutant } from './mutants.ts'
import type { Executed } from './record-coverage.ts'
import type { TestFile } from './tests.ts'

/** The result of a run: the name of the first test that failed, or that they did not end in time. */
export type Outcome = { noticedBy?: string; isTimeout?: boolean }

/** Part of vitest's JSON report. */
type Report = {
  testResults: {
    name: string
    status: string
    startTime: number
    endTime: number
    message: string
    assertionResults: { status: string; fullName: string }[]
  }[]
}

/** A copy of the working tree, in which files are changed and tests run. */
export class WorkingCopy {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'router-mutants-')))

  constructor(source: string) {
    const listed = execFileSync('git', ['ls-files', '-coz', '--exclude-standard'], {
      cwd: source,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    })
    for (const file of listed.split('\0').filter((name) => name && existsSync(join(source, name)))) {
      if (file === 'node_modules') continue
      mkdirSync(dirname(join(this.root, file)), { recursive: true })
      cpSync(join(source, file), join(this.root, file))
    }
    symlinkSync(realpathSync(join(source, 'node_modules')), join(this.root, 'node_modules'))
  }

  /** Runs test files without mutations, and returns those that pass with what they execute. */
  async measure(files: readonly string[]): Promise<{ passing: TestFile[]; failing: string[] }> {
    const folder = join(this.root, 'coverage')
    mkdirSync(folder, { recursive: true })
    const { report } = await this.#run(files, { COVERAGE: folder }, [], 3_600_000)
    const results = (report?.testResults ?? []).map((result) => ({ ...result, path: relative(this.root, result.name) }))
    const passing = results
      .filter(({ path, status }) => status === 'passed' && existsSync(coverageFile(folder, path)))
      .map(({ path, startTime, endTime }) => {
        const executed = JSON.parse(readFileSync(coverageFile(folder, path), 'utf8')) as Executed
        return { path, ms: endTime - startTime, executed }
      })
    const passed = new Set(passing.map(({ path }) => path))
    return { passing, failing: files.filter((file) => !passed.has(file)) }
  }

  /** Runs test files with one mutation, up to the first test that fails. */
  async test(mutant: Mutant, files: readonly string[], mostMs: number): Promise<Outcome> {
    // Without names vitest would run all of them.
    if (files.length === 0) return {}
    const path = join(this.root, mutant.file)
    const original = readFileSync(path, 'utf8')
    writeFileSync(path, mutant.text)
    try {
      const { report, isTimeout } = await this.#run(files, {}, ['--bail', '1'], mostMs)
      if (isTimeout) return { isTimeout }
      if (!report) return { noticedBy: 'the run did not start' }
      const failed = report.testResults.find(({ status }) => status === 'failed')
      if (!failed) return {}
      const test = failed.assertionResults.find(({ status }) => status === 'failed')
      return { noticedBy: `${relative(this.root, failed.name)}: ${test?.fullName ?? failed.message.split('\n')[0]}` }
    } finally {
      writeFileSync(path, original)
    }
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 20 })
  }

  async #run(
    files: readonly string[],
    variables: Record<string, string>,
    flags: readonly string[],
    mostMs: number,
  ): Promise<{ report?: Report; isTimeout: boolean }> {
    const output = join(this.root, 'report.json')
    rmSync(output, { force: true })
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs')
    const config = ['run', '--config', 'tools/mutants/vitest.config.ts', '--root', '.', '--tags-filter=!slow']
    const words = [vitest, ...config, `--outputFile=${output}`, ...flags, ...files]
    const env = { ...process.env, ...optionalData(), ...variables }
    const child = spawn(process.execPath, words, { cwd: this.root, env, stdio: 'ignore', detached: true })
    let isTimeout = false
    const timer = setTimeout(() => {
      isTimeout = true
      killGroup(child.pid)
    }, mostMs)
    await once(child, 'exit')
    clearTimeout(timer)
    // Processes that tests have left.
    killGroup(child.pid)
    if (isTimeout || !existsSync(output)) return { isTimeout }
    return { report: JSON.parse(readFileSync(output, 'utf8')) as Report, isTimeout }
  }
}

function coverageFile(folder: string, test: string): string {
  return join(folder, `${test.replaceAll('/', '+')}.json`)
}

/** The copy has no neighbours: data beside the checkout is found by its variables. */
function optionalData(): Record<string, string> {
  const names = ['RECORDINGS', 'SPECS', 'FACTS', 'JSONATA_SUITE'] as const
  return Object.fromEntries(names.map((name) => [name, dataPath(name)]))
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
