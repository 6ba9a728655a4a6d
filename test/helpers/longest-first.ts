import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The files that take longest, the longest first: one that began last would run alone at the end. */
const longest: readonly string[] = [
  'test/e2e/process/takeover.test.ts',
  'test/e2e/clients/sdk-grid.test.ts',
  'test/e2e/clients/sdk-reliability.test.ts',
  'test/wall/reliability.test.ts',
  'test/e2e/money/leaving-property.test.ts',
  'test/e2e/process/faults.test.ts',
  'test/wall/wall.test.ts',
  'test/cli/check.test.ts',
  'test/e2e/access/secrets.test.ts',
  'test/e2e/recordings/recordings-client-apis.test.ts',
  'test/work/answers.test.ts',
  'test/call/strict-flags.test.ts',
  'test/e2e/process/threads.test.ts',
  'test/snapshot/cache.test.ts',
  'test/management/permissions.test.ts',
  'test/e2e/money/budget.test.ts',
  'test/wall/crowd.test.ts',
  'test/core/young-generation.test.ts',
  'test/e2e/routing/shared-routing.test.ts',
  'test/e2e/recordings/recordings.test.ts',
  'test/http/openapi-bodies.test.ts',
  'test/plugin/load.test.ts',
  'test/e2e/limits/limits.test.ts',
  'test/plugins/cache.test.ts',
  'test/e2e/failures/unreachable.test.ts',
]

/** Starts the longest files first, and the others as vitest does: by their last duration, or else by their size. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const places = new Map(longest.map((path, index) => [resolve(import.meta.dirname, '../..', path), index]))
    const missing = [...places.keys()].filter((path) => !existsSync(path))
    if (missing.length > 0) throw new Error(`test/helpers/longest-first.ts lists files that do not exist: ${missing}`)
    const place = ({ moduleId }: TestSpecification) => places.get(moduleId) ?? longest.length
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}
