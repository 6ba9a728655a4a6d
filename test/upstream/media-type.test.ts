import { expect, test } from 'vitest'
import { mediaTypeOf } from '../../src/upstream/files/fetcher.ts'

const latin = (text: string) => Buffer.from(text, 'latin1')

test.each([
  ['\x89PNG\r\n\x1a\n....', 'image/png'],
  ['\xff\xd8\xff\xe0..JFIF', 'image/jpeg'],
  ['GIF89a....', 'image/gif'],
  ['RIFF....WEBPVP8 ', 'image/webp'],
  ['RIFF....WAVEfmt ', 'audio/wav'],
  ['II*\0....', 'image/tiff'],
  ['BM\x10\0\0\0\0\0\0\0....', 'image/bmp'],
  ['%PDF-1.7\n', 'application/pdf'],
  ['ID3\x04....', 'audio/mpeg'],
  ['\xff\xfb\x90....', 'audio/mpeg'],
  ['fLaC....', 'audio/flac'],
  ['OggS....', 'audio/ogg'],
  ['\x1aE\xdf\xa3....', 'video/webm'],
  ['\0\0\0\x20ftypisom....', 'video/mp4'],
  ['\0\0\0\x20ftypM4A ....', 'audio/mp4'],
  ['\0\0\0\x20ftypheic....', 'image/heic'],
  ['\0\0\0\x20ftypavif....', 'image/avif'],
])('the first bytes tell the type, whatever the server says: %j', (bytes, type) => {
  expect(mediaTypeOf(latin(bytes), 'text/html', '/x.csv')).toBe(type)
})

test.each([
  ['BMW is a car maker', 'text/plain; charset=utf-8', '/', 'text/plain'],
  ['a,b', 'TEXT/CSV', '/x.txt', 'text/csv'],
  ['?', 'image/jpg', '/', 'image/jpeg'],
  ['# a', 'application/octet-stream', '/docs/a.MD', 'text/markdown'],
  [
    'PK\x03\x04',
    'application/zip',
    '/a.docx',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  ],
  ['?', undefined, '/a.json', 'application/json'],
  ['?', 'nonsense', '/a', undefined],
  ['', undefined, '/', undefined],
])('else the server, else the name: %j %s %s', (bytes, declared, path, type) => {
  expect(mediaTypeOf(latin(bytes), declared, path)).toBe(type)
})
