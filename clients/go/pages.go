package artseal

import (
	"context"
	"iter"
)

// Filings yields your filings, highest number first. It asks for a page when the loop gets there, and ends with the
// first error.
func (c *Client) Filings(ctx context.Context, params ListFilingsParams) iter.Seq2[Filing, error] {
	return pages(&params.PageToken, func() (*FilingPage, error) { return c.ListFilings(ctx, params) },
		func(page *FilingPage) ([]Filing, string) { return page.Filings, page.NextPageToken })
}

// Escrows yields your orders, newest first, as [Client.Filings] does.
func (c *Client) Escrows(ctx context.Context, params ListEscrowsParams) iter.Seq2[Escrow, error] {
	return pages(&params.PageToken, func() (*EscrowPage, error) { return c.ListEscrows(ctx, params) },
		func(page *EscrowPage) ([]Escrow, string) { return page.Escrows, page.NextPageToken })
}

// Events yields your events after the cursor params.After, oldest first, up to the first empty page or error. Store the
// Sequence of an event once you have handled it: it is the cursor of the next call.
func (c *Client) Events(ctx context.Context, params ListEventsParams) iter.Seq2[Event, error] {
	return pages(&params.After, func() (*EventList, error) { return c.ListEvents(ctx, params) },
		func(page *EventList) ([]Event, int64) {
			if len(page.Events) == 0 {
				return nil, 0
			}
			return page.Events, page.Next
		})
}

// pages yields the items of pages. It sets the cursor to that of the next page, and ends when that is zero.
func pages[P, T any, C comparable](cursor **C, fetch func() (*P, error), split func(*P) ([]T, C)) iter.Seq2[T, error] {
	first := *cursor
	return func(yield func(T, error) bool) {
		for *cursor = first; ; {
			page, err := fetch()
			if err != nil {
				yield(*new(T), err)
				return
			}
			items, next := split(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == *new(C) {
				return
			}
			*cursor = &next
		}
	}
}
