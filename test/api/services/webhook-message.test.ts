import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { EventSchema } from '../../../gen/artseal/v1/event_pb.ts';
import { writeMessage } from '../../../src/api/message-json.ts';
import { eventMessage, webhookMessage } from '../../../src/api/services/event-service.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import type { Event } from '../../../src/domain/event.ts';

const making = { idKey: new Uint8Array(32), timestamp: createCalendar('Asia/Shanghai').timestamp };
const atMs = Date.parse('2026-11-21T12:00:00Z');
const place = { callerId: 3, sequence: 1_000_007, position: 2_000_000, atMs };
const at = '2026-11-21T20:00:00+08:00';

const filing: Event = { ...place, type: 'filing.created', filingNo: 'AS-2026-000042' };
const order: Event = { ...filing, type: 'escrow.frozen', escrowId: 'ES-2026-7K4Q', state: 'FROZEN' };
const key: Event = { ...place, type: 'key.rotated', keyId: 'key_0123456789abcdef' };
const usage: Event = { ...place, type: 'usage.threshold', month: '2026-11', percent: 80 };
const webhook: Event = { ...place, type: 'webhook.disabled', webhookId: 'wh_0123456789abcdef' };

test('a webhook is the event of the feed, preceded by its type and time', () => {
  for (const event of [filing, order, key, usage, webhook]) {
    const { id, body } = webhookMessage(event, making);
    const inFeed = JSON.stringify(
      writeMessage(EventSchema, create(EventSchema, eventMessage(event, making))),
    );
    assert.equal(body, `{"type":"${event.type}","timestamp":"${at}","data":${inFeed}}`);
    assert.match(id, /^evt_[0-9a-f]{32}$/);
    assert.equal(JSON.parse(body).data.id, id);
  }
});
