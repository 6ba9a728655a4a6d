import { describe, expect, test } from 'vitest'
import { aliasNameProblem, bareName, hasModel, hasName, policyIdProblem, splitModel } from '../../src/core/names.ts'

describe('names', () => {
  test('of aliases may look like models, but have no spaces and no prefix', () => {
    for (const name of ['fast', 'openai/gpt', 'fast@eu', 'a:b_c.d-e', 'openrouter/~x/a-latest', 'x'.repeat(256)]) {
      expect(aliasNameProblem(name), name).toBeUndefined()
    }
    for (const name of [
      '',
      'a b',
      'policy/a',
      'é',
      'a\n',
      'x'.repeat(257),
      'openai/*',
      '../a',
      'a/',
      '/a',
      '__proto__',
    ]) {
      expect(aliasNameProblem(name), name).toMatch(/^must /)
    }
  })

  test('of policies are bare', () => {
    for (const id of ['best', 'best@eu', 'a.b:c_d-e+f', '1']) expect(policyIdProblem(id), id).toBeUndefined()
    for (const id of ['', 'a/b', '@eu', '-a', 'a b', 'policy/a', 'a\n', 'x'.repeat(257)]) {
      expect(policyIdProblem(id), id).toMatch(/^must /)
    }
  })

  test('lose the prefix of policies once', () => {
    expect([bareName('a'), bareName('policy/a'), bareName('policy/policy/a')]).toEqual(['a', 'a', 'policy/a'])
  })

  test('of models are split at the first slash', () => {
    expect(splitModel('one/two/three')).toEqual({ provider: 'one', model: 'two/three' })
    for (const id of ['', 'a', '/a', 'a/', '/']) expect(splitModel(id), id).toBeUndefined()
  })
})

describe('a list of models', () => {
  test('has exact ids and whole providers', () => {
    const list = ['one/a', 'two/*', '*', '/*', '*/a', 'three/x*']
    expect(['one/a', 'two/a', 'two/b/c'].map((id) => hasModel(list, id))).toEqual([true, true, true])
    const others = ['one/b', 'one/A', 'two', 'twofold/a', 'four/a', 'three/xy', 'twox', '']
    expect(others.map((id) => hasModel(list, id))).toEqual(others.map(() => false))
  })

  test('has names only as they are written', () => {
    expect(['two/*', 'two/a', 'one/a', 'one'].map((name) => hasName(['one/a', 'two/*'], name))).toEqual([
      true,
      false,
      true,
      false,
    ])
  })
})
