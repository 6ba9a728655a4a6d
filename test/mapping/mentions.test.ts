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

const names = (text: string) => [...mentionsOf(readMapping(text).tree, (last) => [last]).names].sort()

test('a parameter or an inner variable hides the definition of its name', () => {
  const definition = '$part := function() { messages.parts.secret };'
  expect(names(`( ${definition} $map(list, function($part) { $part.text }) )`)).toEqual(['list', 'text'])
  expect(names(`( ${definition} ($part := other; $part.text) )`)).toEqual(['other', 'text'])
  expect(names(`( ${definition} $f := function($part) { $g($part) }; $g := function($x) { $x.a }; $f(b) )`)).toEqual([
    'a',
    'b',
  ])
  // Outside of the function, and in what the function itself calls, the definition counts.
  expect(names(`( ${definition} $g := function() { $part() }; function($part) { $g() }(b) )`)).toContain('secret')
  expect(names(`( ${definition} ($x := $part(); $part := 1; $x) )`)).toContain('secret')
  expect(names('( $facts := target.traits; function($facts) { $facts.wanted }(b) )')).toEqual(['b', 'wanted'])
})

test('a call of a function of the router mentions the members that it takes over', () => {
  expect(names('parts.$dataUrl($)')).toEqual(['data', 'media_type', 'parts', 'url'])
  expect(names('$map(parts, $mediaType)')).toEqual(['filename', 'media_type', 'parts'])
  expect(names('( $dataUrl := function($part) { $part.text }; parts.$dataUrl($) )')).toEqual(['parts', 'text'])
  expect(names('( $f := function($part) { $mediaFormat($part) }; parts )')).toEqual(['parts'])
})

test('a definition that only a variable of the same name seems to use leaves no code', () => {
  const code = readMapping('( $part := function() { secret }; $map(list, function($part) { $part.text }) )').explain()
  expect(code).not.toContain('secret')
})
