// Runs the steps of the test plan with the Go kit: one JSON object a line in, one out.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"time"

	"artseal.dev/artseal-go"
)

type access struct {
	URL, APIKey, APISecret string
	ClockOffsetS           int
	TimeoutS               float64
}

type step struct {
	Step           string
	Client         access
	Artwork        artseal.FilingRequest
	IdempotencyKey artseal.IdempotencyKey
	FilingNo       string
	Order          artseal.EscrowRequest
	EscrowID       string
	PageSize       int32
	Max            int
	State          artseal.EscrowState
	After          int64
	URL            string
	EventTypes     []string
	WebhookID      string
	Status         artseal.WebhookStatus
	Secrets        []string
	Headers        map[string]string
	Body           string
	NowS           int64
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

func newClient(access access) *artseal.Client {
	client, err := artseal.New(artseal.Config{
		BaseURL:   access.URL,
		APIKey:    access.APIKey,
		APISecret: access.APISecret,
		Timeout:   seconds(access.TimeoutS),
		Now:       func() time.Time { return time.Now().Add(time.Duration(access.ClockOffsetS) * time.Second) },
	})
	if err != nil {
		panic(err)
	}
	return client
}

// collect returns a value of each item, at most max if it is positive.
func collect[T, V any](items iter.Seq2[T, error], max int, value func(T) V) (any, error) {
	values := []V{}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		values = append(values, value(item))
		if len(values) == max {
			break
		}
	}
	return values, nil
}

func verify(s step) (any, error) {
	header := http.Header{}
	for name, value := range s.Headers {
		header.Set(name, value)
	}
	now := func() time.Time { return time.Unix(s.NowS, 0) }
	return artseal.Webhooks{Secrets: s.Secrets, Now: now}.Verify(header, []byte(s.Body))
}

func call(s step, client *artseal.Client) (any, error) {
	ctx := context.Background()
	switch s.Step {
	case "file":
		if s.IdempotencyKey == "" {
			return client.CreateFiling(ctx, s.Artwork)
		}
		return client.CreateFiling(ctx, s.Artwork, s.IdempotencyKey)
	case "get":
		return client.GetFiling(ctx, s.FilingNo)
	case "provenance":
		return client.GetProvenance(ctx, s.FilingNo)
	case "escrow":
		return client.CreateEscrow(ctx, s.Order)
	case "release":
		return client.ReleaseEscrow(ctx, s.EscrowID)
	case "filings":
		filings := client.Filings(ctx, artseal.ListFilingsParams{PageSize: &s.PageSize})
		return collect(filings, s.Max, func(filing artseal.Filing) string { return filing.FilingNo })
	case "orders":
		orders := client.Escrows(ctx, artseal.ListEscrowsParams{PageSize: &s.PageSize, State: &s.State})
		return collect(orders, s.Max, func(order artseal.Escrow) string { return order.EscrowID })
	case "events":
		events := client.Events(ctx, artseal.ListEventsParams{After: &s.After})
		return collect(events, s.Max, func(event artseal.Event) int64 { return event.Sequence })
	case "addWebhook":
		return client.CreateWebhook(ctx, artseal.WebhookRequest{URL: s.URL, EventTypes: &s.EventTypes})
	case "editWebhook":
		return client.UpdateWebhook(ctx, s.WebhookID, artseal.WebhookChange{Status: &s.Status})
	case "print":
		return fmt.Sprintf("%v %+v %#v %s", client, client, client, client), nil
	case "removeWebhook":
		return client.DeleteWebhook(ctx, s.WebhookID)
	}
	panic("no step " + s.Step)
}

func main() {
	input, output := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	clients := map[access]*artseal.Client{}
	for input.More() {
		var s step
		if err := input.Decode(&s); err != nil {
			panic(err)
		}
		if s.Step == "evidence" {
			output.Encode(map[string]bool{"unsupported": true})
			continue
		}
		var result any
		var err error
		if s.Step == "webhook" {
			result, err = verify(s)
		} else {
			if clients[s.Client] == nil {
				clients[s.Client] = newClient(s.Client)
			}
			result, err = call(s, clients[s.Client])
		}
		var failure *artseal.Error
		switch {
		case err == nil:
			output.Encode(map[string]any{"ok": true, "result": result})
		case errors.As(err, &failure):
			output.Encode(map[string]any{"ok": false, "error": map[string]any{
				"code": failure.Code, "message": failure.Message, "status": failure.Status,
				"requestId": failure.RequestID, "help": failure.Help,
			}})
		default:
			output.Encode(map[string]any{"ok": false, "error": map[string]any{"code": "ARGUMENT", "message": err.Error()}})
		}
	}
}
