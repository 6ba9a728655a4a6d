/** A sum in USD as decimal text, exactly, in nano-USD: `'12.5'` is 12500000000n. Undefined for any other text. */
export function nanoOf(text: string): bigint | undefined {
  const match = /^(-?)(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text)
  if (!match) return undefined
  const [, sign, whole = '', fraction = ''] = match
  const nano = BigInt(whole) * nanoPerUsd + BigInt(fraction.padEnd(9, '0'))
  return sign ? -nano : nano
}

/** A sum in nano-USD as a JSON number of USD. */
export function usdOf(nano: bigint): number {
  return Number(usdText(nano))
}

/** A sum in nano-USD as decimal text in USD, with at least two decimals. */
export function usdText(nano: bigint): string {
  const [sign, size] = nano < 0n ? ['-', -nano] : ['', nano]
  const fraction = String(size % nanoPerUsd)
    .padStart(9, '0')
    .replace(/0{1,7}$/, '')
  return `${sign}${size / nanoPerUsd}.${fraction}`
}

/** A sum in pico-USD as a JSON number of USD. */
export function usdOfPico(pico: bigint): number {
  const size = pico < 0n ? -pico : pico
  const text = `${size / picoPerUsd}.${String(size % picoPerUsd).padStart(12, '0')}`
  return Number(pico < 0n ? `-${text}` : text)
}

const picoPerUsd = 1_000_000_000_000n
const nanoPerUsd = 1_000_000_000n
