import {
  type BinaryExpression,
  type CallExpression,
  type Expression,
  isBinaryExpression,
  isCallExpression,
  isConditionalExpression,
  isExpressionStatement,
  isFunctionLikeDeclaration,
  isIfStatement,
  isPostfixUnaryExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isThrowStatement,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast'

/** A piece of a file, and the text that replaces it. Code outside of functions runs when its file is loaded. */
export type Mutation = { start: number; end: number; text: string; isInFunction: boolean }

const operators: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '+=': ['-=', '='],
  '-=': ['+=', '='],
  '*=': ['/=', '='],
  '||=': ['='],
  '&&=': ['='],
  '??=': ['='],
  '++': ['--'],
  '--': ['++'],
}

const similar: Readonly<Record<string, string>> = {
  max: 'min',
  min: 'max',
  some: 'every',
  every: 'some',
  ceil: 'floor',
  floor: 'ceil',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
}

/** Methods whose result may be used in place of the value they are called on. */
const passThrough = ['filter', 'sort', 'toSorted', 'reverse', 'slice', 'trim', 'toLowerCase', 'toUpperCase']

/** Replacements in the text of SQL statements. */
const inSql: readonly (readonly [RegExp, string])[] = [
  [/ >= /g, ' > '],
  [/ > /g, ' >= '],
  [/ <= /g, ' < '],
  [/ < /g, ' <= '],
  [/(?<=\b(?:WHERE|AND|OR|ON) [\w.]+) = (?=\S)/g, ' <> '],
  [/ \+ /g, ' - '],
  [/ AND /g, ' OR '],
  [/ OR /g, ' AND '],
  [/ DESC\b/g, ' ASC'],
  [/ IS NULL\b/g, ' IS NOT NULL'],
  [/ IS NOT NULL\b/g, ' IS NULL'],
  [/\b[Mm](?:ax|AX)\(/g, 'min('],
  [/\b[Mm](?:in|IN)\(/g, 'max('],
]

/** Lists the mutations of a file. Some of them do not compile: types have to be checked. */
export function mutationsOf(file: SourceFile): Mutation[] {
  const found: Mutation[] = []
  let functions = 0
  const add = (start: number, end: number, text: string) =>
    found.push({ start, end, text, isInFunction: functions > 0 })
  const replace = (node: Node, text: string) => add(node.getStart(file), node.end, text)
  const visit = (node: Node) => {
    if (isWithoutEffect(node)) return
    const isFunction = isFunctionLikeDeclaration(node)
    if (isFunction) functions++
    for (const text of replacementsOf(node, file)) replace(node, text)
    if (isIfStatement(node)) for (const constant of ['true', 'false']) replace(node.expression, constant)
    if (isBinaryExpression(node)) replaceOperator(node)
    if (isCallExpression(node)) replaceFunction(node)
    if (isPostfixUnaryExpression(node) || isPrefixUnaryExpression(node)) replaceStep(node)
    if (isText(node)) for (const { start, end, text } of sqlMutations(node, file)) add(start, end, text)
    node.forEachChild(visit)
    if (isFunction) functions--
  }
  const replaceOperator = ({ operatorToken }: BinaryExpression) => {
    for (const text of operators[operatorToken.getText(file)] ?? []) replace(operatorToken, text)
  }
  const replaceFunction = ({ expression }: CallExpression) => {
    if (!isPropertyAccessExpression(expression)) return
    const other = similar[expression.name.getText(file)]
    if (other !== undefined) replace(expression.name, other)
  }
  /** `++` and `--` have no nodes of their own. */
  const replaceStep = (node: Node & { operand: Expression }) => {
    const text = node.getText(file)
    const operand = node.operand.getText(file)
    const [other] = operators[text.replace(operand, '')] ?? []
    if (other === undefined) return
    replace(node, text.startsWith(operand) ? operand + other : other + operand)
  }
  visit(file)
  return found
}

/** Types, imports, and what only people read: messages of errors. */
function isWithoutEffect(node: Node): boolean {
  const { kind } = node
  return (
    kind === SyntaxKind.ImportDeclaration ||
    kind === SyntaxKind.ExportDeclaration ||
    kind === SyntaxKind.TypeAliasDeclaration ||
    kind === SyntaxKind.InterfaceDeclaration ||
    (kind >= SyntaxKind.FirstTypeNode && kind <= SyntaxKind.LastTypeNode) ||
    isThrowStatement(node)
  )
}

/** Returns what can be put in the place of a whole node. */
function replacementsOf(node: Node, file: SourceFile): string[] {
  const text = node.getText(file)
  if (isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].map((branch) => `(${branch.getText(file)})`)
  if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
    return [node.operand.getText(file)]
  if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.QuestionQuestionToken)
    return [`(${node.left.getText(file)})`, `(${node.right.getText(file)})`]
  if (isExpressionStatement(node)) return [removedStatement(node.expression)].filter((other) => other !== undefined)
  if (isCallExpression(node) && isPropertyAccessExpression(node.expression)) {
    const { expression, name } = node.expression
    return passThrough.includes(name.getText(file)) ? [expression.getText(file)] : []
  }
  return literalReplacements(node, text)
}

/** Removes statements that are there for their effect: calls and assignments. */
function removedStatement(expression: Expression): string | undefined {
  const inner = expression.kind === SyntaxKind.AwaitExpression ? firstChild(expression) : expression
  const isAssignment = isBinaryExpression(inner) && inner.operatorToken.kind === SyntaxKind.EqualsToken
  return isCallExpression(inner) || isAssignment ? '{}' : undefined
}

function firstChild(node: Node): Node {
  let first: Node = node
  node.forEachChild((child) => {
    first = child
    return true
  })
  return first
}

function literalReplacements(node: Node, text: string): string[] {
  switch (node.kind) {
    case SyntaxKind.TrueKeyword:
      return ['false']
    case SyntaxKind.FalseKeyword:
      return ['true']
    case SyntaxKind.NumericLiteral:
    case SyntaxKind.BigIntLiteral:
      return [otherNumber(text)]
    case SyntaxKind.StringLiteral:
      // Text with spaces is a message, or SQL.
      return text.includes(' ') || text === "''" ? [] : ["''"]
    default:
      return []
  }
}

/** Small numbers are changed by one, others are doubled. */
function otherNumber(text: string): string {
  const suffix = text.endsWith('n') ? 'n' : ''
  const number = Number(text.replaceAll('_', '').replace(/n$/, ''))
  return `${number < 10 ? number + 1 : number * 2}${suffix}`
}

function isText(node: Node): boolean {
  return (
    node.kind === SyntaxKind.StringLiteral ||
    node.kind === SyntaxKind.NoSubstitutionTemplateLiteral ||
    node.kind === SyntaxKind.TemplateHead ||
    node.kind === SyntaxKind.TemplateMiddle ||
    node.kind === SyntaxKind.TemplateTail
  )
}

function sqlMutations(node: Node, file: SourceFile): Omit<Mutation, 'isInFunction'>[] {
  const text = node.getText(file)
  if (!/\b(?:SELECT|UPDATE|INSERT|DELETE|WHERE|ORDER BY|VALUES)\b/.test(text)) return []
  const start = node.getStart(file)
  return inSql.flatMap(([pattern, other]) =>
    [...text.matchAll(pattern)].map(({ index, 0: match }) => ({
      start: start + index,
      end: start + index + match.length,
      text: other,
    })),
  )
}
