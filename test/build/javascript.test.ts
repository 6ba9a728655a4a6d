import { expect, test } from 'vitest'
import { importingJavaScript, javascriptOf } from '../../tools/build/javascript.ts'

test('types become blanks: lines and columns stay', () => {
  const text = "import type { A } from './a.ts'\nconst one: number = 1\nexport const two = (one as number) + 1\n"
  const made = javascriptOf(text)
  expect(made.split('\n').map((line) => line.length)).toEqual(text.split('\n').map((line) => line.length))
  expect(made.split('\n')[2]?.indexOf('+ 1')).toBe(text.split('\n')[2]?.indexOf('+ 1'))
  expect(made).not.toContain('number')
})

test.each([
  ["import { a } from './a.ts'", "import { a } from './a.js'"],
  ["export * from '../b/a.ts'", "export * from '../b/a.js'"],
  ["await import('./main.ts')", "await import('./main.js')"],
  ["new Worker(new URL('./worker.ts', import.meta.url))", "new Worker(new URL('./worker.js', import.meta.url))"],
  ["require('./position.ts')", "require('./position.js')"],
  ['import { A } from "../core/a.ts";', 'import { A } from "../core/a.js";'],
])('%s names the JavaScript', (text, made) => {
  expect(importingJavaScript(text)).toBe(made)
})

test.each(["'main.ts'", "'pages/overview.ts'", "`import plugin from './${name}.ts'`", "'./a.test.ts.txt'"])(
  '%s stays: it is no import of this file',
  (text) => {
    expect(importingJavaScript(text)).toBe(text)
  },
)
