import { expect, test } from 'vitest'
import { routingOfForm } from '../../src/api/operations/form-fields.ts'

test('routing fields of a form are members of an object, whichever way they are written', () => {
  const { routing, others } = routingOfForm([
    ['provider[order][]', 'a'],
    ['provider[order][]', 'b'],
    ['provider[max_price][prompt]', '1'],
    ['models', 'x/y'],
    ['prompt', 'Hi'],
  ])
  expect(routing).toEqual({ provider: { order: ['a', 'b'], max_price: { prompt: '1' } }, models: ['x/y'] })
  expect(others).toEqual([['prompt', 'Hi']])
})

test.each(['provider', 'prompt', '__proto__'])('a name with thousands of levels is refused: %s', (name) => {
  const deep = `${name}${'[a'.repeat(8_000)}`
  expect(() => routingOfForm([[deep, 'x']])).toThrow(`A field of '${name}' is nested in more than 8 levels.`)
})
