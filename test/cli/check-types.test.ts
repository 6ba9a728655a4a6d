import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { checkTypes } from '../../src/cli/check-types.ts'

const plugin = (hook: string) => `import { definePlugin, Refusal } from 'inference-router/plugin'
export default definePlugin({
  setup: () => ({
    ${hook}
  }),
})
void Refusal
`

describe('types of plugins', () => {
  const folder = mkdtempSync(join(tmpdir(), 'types-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const texts = {
    'right.ts': plugin(`check: ({ texts }) => texts.length > 3 ? new Refusal(451, 'Too much.') : undefined,`),
    'wrong.ts': plugin(`async event() { return undefined },`),
    'helped.ts': `import { readFileSync } from 'node:fs'\nimport './lib/help.ts'\nvoid readFileSync\n`,
    'lib/help.ts': 'export const one: number = "1"\n',
  }
  for (const [file, text] of Object.entries(texts)) {
    mkdirSync(join(folder, file, '..'), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  const files = (...names: string[]) => names.map((name) => join(folder, name))

  test('are checked against the contract, whatever folder they are in', async () => {
    expect(await checkTypes(files('right.ts'), folder)).toEqual({ problems: [] })
    const { problems, unchecked } = await checkTypes(files('right.ts', 'wrong.ts'), folder)
    expect(unchecked).toBeUndefined()
    expect(problems).toMatchObject([{ file: join(folder, 'wrong.ts'), line: 4, severity: 'error' }])
  })

  test('of files that a plugin imports are checked with it', async () => {
    const { problems } = await checkTypes(files('helped.ts'), folder)
    expect(problems).toMatchObject([{ file: join(folder, 'lib/help.ts'), line: 1, column: 14 }])
  })

  test('that no compiler can check are reported as such, with what to install', async () => {
    const { problems, unchecked } = await checkTypes(files('wrong.ts'), folder, [folder])
    expect(problems).toEqual([])
    expect(unchecked).toContain('npm install --save-dev typescript @types/node')
  })
})
