/**
 * Compiles a regular expression in which every repetition has an end, none is inside another, and which can be tried in few ways, so that
 * no text takes long. Throws an Error that names it.
 */
export function boundedPattern(name: string, pattern: string, flags: string): RegExp {
  requireBounded(name, pattern)
  return new RegExp(pattern, flags)
}

const token =
  /\\k<\w+>|\\.|\[(?:\\.|[^\]\\])*\]|(?<open>\((?:\?(?:[:=!]|<[=!]|<\w+>))?)|(?<close>\))|(?<or>\|)|(?<repeat>[*+?]|\{\d+(?:,\d*)?\})\??|./gsu

function requireBounded(name: string, pattern: string): void {
  const requires = (isFine: boolean, why: string) => {
    if (!isFine) throw new Error(`${name} ${why}`)
  }
  /** Flags of the open groups: true for one that can be matched in several ways; the last is the one that was closed. */
  const groups: boolean[] = [false]
  let closed: boolean | undefined
  let ways = 1
  for (const { 0: text, groups: { open, close, or, repeat } = {} } of pattern.matchAll(token)) {
    requires(!/^\\(?:[1-9]|k<)/.test(text), 'refers to an earlier group, which may take long')
    if (open) groups.push(false)
    else if (or) groups[groups.length - 1] = true
    else if (repeat) {
      const [least, most] = countsOf(repeat)
      requires(most < Number.POSITIVE_INFINITY, `repeats without end (${repeat}): write {1,64} or the like`)
      requires(!closed || most < 2, `repeats a group (${repeat}) that has repetitions or choices inside`)
      if (most > least) groups[groups.length - 1] = true
      ways *= most - least + 1
    }
    closed = close ? groups.pop() : undefined
    if (close && closed) groups[groups.length - 1] = true
    requires(ways <= mostWays, `can be tried in more than ${mostWays} ways: shorten its repetitions`)
  }
}

const mostWays = 500

function countsOf(repeat: string): [least: number, most: number] {
  if (repeat === '?') return [0, 1]
  if (repeat === '*' || repeat === '+') return [0, Number.POSITIVE_INFINITY]
  const [least = 0, most = repeat.includes(',') ? Number.POSITIVE_INFINITY : least] = (repeat.match(/\d+/g) ?? []).map(
    Number,
  )
  return [least, most]
}
