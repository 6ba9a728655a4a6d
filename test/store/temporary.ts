import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The path of a file in a folder of its own, gone after the test. */
export function temporaryFile(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'router-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, name)
}
