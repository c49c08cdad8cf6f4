/** A call to write code for. */
export interface Call {
  /** The address of the service, without a slash at its end. */
  readonly base: string;
  readonly method: string;
  readonly target: string;
  /** '' if there is none. */
  readonly body: string;
  /** Headers besides the four of the signature. */
  readonly headers: Readonly<Record<string, string>>;
}

const credentials = 'Set the variables ARTSEAL_API_KEY and ARTSEAL_API_SECRET first.';
/** JSON strings are literals in JavaScript and Python, too. */
const json = JSON.stringify;
/** Quotes a text for a POSIX shell. */
const shell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A curl command with the headers of a signature. */
function curl(call: Call, signed: Call['headers']): string {
  const lines = Object.entries(signed).map(([name, value]) => shell(`${name}: ${value}`));
  return command(call, shell(call.base + call.target), lines, shell(call.body));
}

/** A curl command; URL, signed headers and body are quoted already. */
function command(
  { method, target, body, headers }: Call,
  url: string,
  signed: string[],
  data: string,
): string {
  // Otherwise curl expands brackets and removes dot segments.
  const exact = /[[\]{}]|\/\./.test(target) ? '--globoff --path-as-is ' : '';
  const others = Object.entries(headers).map(([name, value]) => shell(`${name}: ${value}`));
  return [
    `curl -sS ${exact}-X ${method} ${url}`,
    ...[...others, ...signed].map((line) => `-H ${line}`),
    // Not --data-binary, which reads a file if the body begins with @.
    ...(body === '' ? [] : [`--data-raw ${data}`]),
  ].join(' \\\n  ');
}

/** A shell script that signs with openssl and sends with curl. */
function openssl(call: Call): string {
  const signed = [
    'Api-Key: $ARTSEAL_API_KEY',
    'Timestamp: $timestamp',
    'Nonce: $nonce',
    'Signature: $signature',
  ];
  const quoted = signed.map((line) => `"X-${line}"`);
  return `# ${credentials}
target=${shell(call.target)}
body=${shell(call.body)}
timestamp=$(date +%s)
nonce=$(openssl rand -hex 16)
body_hash=$(printf %s "$body" | openssl dgst -sha256 -r | cut -d' ' -f1)
signature=$(printf %s "${call.method}$target$body_hash$timestamp$nonce" |
  openssl dgst -sha256 -hmac "$ARTSEAL_API_SECRET" -r | cut -d' ' -f1)
${command(call, `${shell(call.base)}"$target"`, quoted, '"$body"')}`;
}

/** A module for Node. */
const javaScript = ({
  base,
  method,
  target,
  body,
  headers,
}: Call): string => `// In a file call.mjs. ${credentials}
import { createHash, createHmac, randomBytes } from 'node:crypto';

const { ARTSEAL_API_KEY: key, ARTSEAL_API_SECRET: secret } = process.env;
const [method, target] = [${json(method)}, ${json(target)}];
const body = ${json(body)};
const timestamp = String(Math.floor(Date.now() / 1000));
const nonce = randomBytes(16).toString('hex');
const message = method + target + createHash('sha256').update(body).digest('hex') + timestamp + nonce;
const signature = createHmac('sha256', secret).update(message).digest('hex');
const signed = { 'X-Api-Key': key, 'X-Timestamp': timestamp, 'X-Nonce': nonce, 'X-Signature': signature };
const headers = { ...${json(headers)}, ...signed };
const response = await fetch(${json(base)} + target, { method, headers, body: body || undefined });
console.log(response.status, await response.text());`;

/** A program for Python's standard library. */
const python = ({ base, method, target, body, headers }: Call): string => `# ${credentials}
import hashlib, hmac, os, secrets, time, urllib.error, urllib.request

key, secret = os.environ["ARTSEAL_API_KEY"], os.environ["ARTSEAL_API_SECRET"]
method, target = ${json(method)}, ${json(target)}
body = ${json(body)}.encode()
timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
message = method + target + hashlib.sha256(body).hexdigest() + timestamp + nonce
signature = hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()
signed = {"X-Api-Key": key, "X-Timestamp": timestamp, "X-Nonce": nonce, "X-Signature": signature}
headers = {**${json(headers)}, **signed}
request = urllib.request.Request(${json(base)} + target, body or None, headers, method=method)
try:
    response = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    response = error
print(response.status, response.read().decode())`;

/** Writes the code of a call, by language. `signed` are the four headers of a signature, which only curl needs. */
export const samples: Readonly<Record<string, (call: Call, signed: Call['headers']) => string>> = {
  curl,
  'Shell with openssl': openssl,
  'JavaScript (Node)': javaScript,
  Python: python,
};
