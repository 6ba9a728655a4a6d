import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isEquivalent } from './equivalent.ts'
import { measuredTests } from './measured-tests.ts'
import { type Mutant, mutantsOf } from './mutants.ts'
import { Imports, type TestFile, testFilesIn, testsFor } from './tests.ts'
import { WorkingCopy } from './working-copy.ts'

const usage = `Usage: npm run mutants -- <folder of src/>... [how many per folder]
  --seed <number>     another sample (default 1)
  --tests <paths>     only these test files or folders, separated by commas (default: test)
  --seconds <number>  how long the tests of a mutant may take without mutations (default 60)
  --only <text>       only mutants of files whose path contains this`

/** The numbers of one folder. */
type Result = {
  folder: string
  mutants: number
  noticed: number
  timeouts: number
  equivalent: number
  survivors: Mutant[]
}

type Settings = { count: number; seed: number; mostMs: number; only: string }

/** Changes src/ in many small ways, one at a time, and shows by folder how many of the changes the tests notice. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string', default: '1' },
      tests: { type: 'string', default: 'test' },
      seconds: { type: 'string', default: '60' },
      only: { type: 'string', default: '' },
    },
  })
  const folders = positionals.filter((word) => !/^\d+$/.test(word)).map((word) => word.replace(/^src\/|\/$/g, ''))
  if (folders.length === 0) throw new Error(usage)
  const settings = {
    count: Number(positionals.find((word) => /^\d+$/.test(word)) ?? 40),
    seed: Number(values.seed),
    mostMs: Number(values.seconds) * 1_000,
    only: values.only,
  }
  const copy = new WorkingCopy(join(import.meta.dirname, '../..'))
  process.once('SIGINT', () => {
    copy.remove()
    process.exit(130)
  })
  try {
    const tests = await measuredTests(copy, testFilesIn(copy.root, values.tests.split(',')))
    const results: Result[] = []
    for (const folder of folders) results.push(await resultOf(folder, copy, tests, settings))
    console.log(`\n${reportOf(results)}`)
  } finally {
    copy.remove()
  }
}

/** Applies a sample of mutants of a folder, at most one on each line. */
async function resultOf(
  folder: string,
  copy: WorkingCopy,
  tests: readonly TestFile[],
  { count, seed, mostMs, only }: Settings,
): Promise<Result> {
  const imports = new Imports(copy.root)
  const result: Result = { folder, mutants: 0, noticed: 0, timeouts: 0, equivalent: 0, survivors: [] }
  const lines = new Set<string>()
  for (const mutant of mutantsOf(copy.root, folder, seed)) {
    if (result.mutants >= count) break
    const line = `${mutant.file}:${mutant.line}`
    if (lines.has(line) || !mutant.file.includes(only)) continue
    lines.add(line)
    if (isEquivalent(mutant)) {
      result.equivalent++
      continue
    }
    result.mutants++
    const chosen = testsFor(mutant, tests, imports, mostMs)
    const expectedMs = tests.reduce((sum, { path, ms }) => sum + (chosen.includes(path) ? ms : 0), 0)
    // Mutants that loop forever are stopped; a busy machine is not one.
    const { noticedBy, isTimeout } = await copy.test(mutant, chosen, 60_000 + 5 * expectedMs)
    if (noticedBy || isTimeout) result.noticed++
    else result.survivors.push(mutant)
    if (isTimeout) result.timeouts++
    const outcome = isTimeout
      ? 'noticed: no end'
      : noticedBy
        ? `noticed by ${noticedBy}`
        : `SURVIVED ${chosen.length} test files`
    console.log(`${line}  ${mutant.before}  →  ${mutant.after}\n    ${outcome}`)
  }
  return result
}

function reportOf(results: readonly Result[]): string {
  const rows = results.map(({ folder, mutants, noticed, timeouts, equivalent }) => {
    const rate = mutants > 0 ? `${Math.round((100 * noticed) / mutants)} %` : '–'
    return [`${folder}/`, mutants, noticed, timeouts, equivalent, rate]
  })
  const header = ['folder', 'mutants', 'noticed', 'by time', 'equivalent, not run', 'rate']
  const table = [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  const survivors = results.flatMap((result) => result.survivors)
  const list = survivors.map(({ file, line, before, after }) => `${file}:${line}\n  - ${before}\n  + ${after}`)
  return [...table, '', `Survivors: ${survivors.length}`, ...list].join('\n')
}

await main()
