/** Returns a text without what hides words: compatible forms of letters, signs without width, more than one space. */
export function plain(text: string): string {
  return text.normalize('NFKC').replace(invisible, '').replace(/\s+/g, ' ')
}

/** Signs without width, and accents that stand for themselves. */
const invisible = /[\p{Cf}\p{Mn}\p{Me}\p{DI}\u2800]/gu

/**
 * Returns a text by the shapes of its letters: without accents, and with Latin letters for those of other scripts that look the same. It
 * is for comparing with patterns that went through `bare` as well.
 */
export function skeleton(text: string): string {
  // Texts of plain letters are the most common.
  if (/^[\x20-\x7e]*$/.test(text)) return text.replace(/ {2,}/g, ' ')
  return bare(text.normalize('NFKD')).replace(invisible, '').replace(/\s+/g, ' ')
}

/** Returns a text, or the source of a regular expression, with bare Latin letters where it has others that look like them. */
export function bare(text: string): string {
  return text
    .normalize('NFD')
    .replace(/[\p{Mn}\p{Me}]/gu, '')
    .replace(lookalikes, (letter) => latin.get(letter) ?? letter)
}

/** Letters that look like a Latin one, by that one: Cyrillic, Greek, Armenian, Cherokee and small capitals. */
const shapes: { readonly [letter: string]: string } = {
  a: 'аαɑᴀ',
  b: 'ьƅʙ',
  c: 'сϲᴄ',
  d: 'ԁɗᴅ',
  e: 'еєεҽᴇ',
  f: 'ғƒꜰ',
  g: 'ɡցɢ',
  h: 'һհʜ',
  i: 'іιıɩɪ',
  j: 'јϳᴊ',
  k: 'кκᴋ',
  l: 'ӏⅼʟǀ',
  m: 'мᴍ',
  n: 'ոпηɴ',
  o: 'оοօσᴏ',
  p: 'рρᴘ',
  q: 'ԛգ',
  r: 'гᴦʀ',
  s: 'ѕꜱ',
  t: 'тτᴛ',
  u: 'υսцᴜ',
  v: 'ѵνᴠ',
  w: 'ԝωшᴡ',
  x: 'хχ',
  y: 'уγүʏ',
  z: 'ᴢ',
  A: 'АΑᎪ',
  B: 'ВΒᏴ',
  C: 'СϹᏟ',
  D: 'Ꭰᗞ',
  E: 'ЕΕᎬ',
  F: 'Ϝ',
  G: 'ԌᏀ',
  H: 'НΗᎻ',
  I: 'ІΙӀ',
  J: 'ЈᎫ',
  K: 'КΚᏦ',
  L: 'Ꮮ',
  M: 'МΜᎷ',
  N: 'Ν',
  O: 'ОΟՕ',
  P: 'РΡᏢ',
  Q: 'Ԛ',
  R: 'ᎡᏒ',
  S: 'ЅᏚՏ',
  T: 'ТΤᎢ',
  U: 'Ս',
  V: 'ѴᏙ',
  W: 'ԜᎳ',
  X: 'ХΧ',
  Y: 'УΥҮ',
  Z: 'ΖᏃ',
}

const latin: ReadonlyMap<string, string> = new Map(
  Object.entries(shapes).flatMap(([letter, others]) => [...others].map((other) => [other, letter] as const)),
)

const lookalikes = new RegExp(`[${[...latin.keys()].join('')}]`, 'gu')
