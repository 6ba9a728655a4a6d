import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filesOf } from './mutants.ts'
import type { TestFile } from './tests.ts'
import type { WorkingCopy } from './working-copy.ts'

type Kept = { [path: string]: { hash: string; test: TestFile } }

/**
 * Returns the test files that pass, with their duration and what they execute. What was measured is kept in the temporary folder for
 * the next run: as long as src/ does not change, only test files that have changed are measured again.
 */
export async function measuredTests(copy: WorkingCopy, files: readonly string[]): Promise<TestFile[]> {
  const hashOf = (...paths: string[]) => {
    const hash = createHash('sha256')
    for (const path of paths) hash.update(readFileSync(join(copy.root, path)))
    return hash.digest('hex').slice(0, 16)
  }
  const sources = hashOf(...filesOf(copy.root, '.'))
  const path = join(tmpdir(), `router-mutants-${sources}.json`)
  const kept: Kept = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Kept) : {}
  const changed = files.filter((file) => kept[file]?.hash !== hashOf(file))
  if (changed.length > 0) {
    console.log(`Measuring ${changed.length} test files`)
    const { passing, failing } = await copy.measure(changed)
    for (const test of passing) kept[test.path] = { hash: hashOf(test.path), test }
    for (const file of failing) {
      delete kept[file]
      console.log(`Not used, because it fails or has no test to run: ${file}`)
    }
    writeFileSync(path, JSON.stringify(kept))
  }
  return files.flatMap((file) => kept[file]?.test ?? [])
}
