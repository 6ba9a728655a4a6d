/** Answers everything with a 429, as fast as Node can. */
import { createServer } from 'node:http'
import { serveMeasurements } from './measured.ts'

const text = '{"error":{"message":"Too many calls are running."}}'
serveMeasurements(
  createServer((request, response) => {
    request.resume()
    response.writeHead(429, { 'content-type': 'application/json', 'content-length': text.length }).end(text)
  }),
)
