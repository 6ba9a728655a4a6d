import { expect, test } from 'vitest'
import { readMapping } from '../../src/mapping/mapping.ts'
import { mentionsOf } from '../../src/mapping/mentions.ts'

test('a filter mentions the compared values, on a path as on a variable', () => {
  const kinds = (text: string) => {
    const { compared } = mentionsOf(readMapping(text).tree, (last) => [last])
    return [...(compared.get('type') ?? [])]
  }
  expect(kinds('messages.parts[type = "image"]')).toEqual(['image'])
  expect(kinds('( $of := function($parts) { $parts[type in ["image", "file"]] }; $of(parts) )')).toEqual([
    'image',
    'file',
  ])
  expect(kinds('( $shown := parts; $shown[type = "image"][0].data )')).toEqual(['image'])
})
