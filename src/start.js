#!/usr/bin/env node
// JavaScript, as what it imports first: Node finds kept code of TypeScript without its compiler, which takes 50 ms to load.
import { keepCode } from './runtime/cache-folder.js'

keepCode()
await import('./main.ts')
