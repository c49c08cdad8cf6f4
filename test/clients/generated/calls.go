// A platform's program on a client that openapi-generator generated, which makes the calls of a sale.
//
// Prints their typed answers as JSON. ARTSEAL_URL, ARTSEAL_API_KEY and ARTSEAL_API_SECRET say where and as whom.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	artseal "artseal.example/platform/client"
)

// signing signs every request with the key and secret of the platform.
type signing struct{}

func (signing) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		body = must(io.ReadAll(request.Body))
	}
	bodyHash := sha256.Sum256(body)
	timestamp, nonce := strconv.FormatInt(time.Now().Unix(), 10), rand.Text()
	mac := hmac.New(sha256.New, []byte(os.Getenv("ARTSEAL_API_SECRET")))
	io.WriteString(mac, request.Method+request.URL.RequestURI()+hex.EncodeToString(bodyHash[:])+timestamp+nonce)
	signed := request.Clone(request.Context())
	signed.Body = io.NopCloser(bytes.NewReader(body))
	signed.Header.Set("X-Api-Key", os.Getenv("ARTSEAL_API_KEY"))
	signed.Header.Set("X-Timestamp", timestamp)
	signed.Header.Set("X-Nonce", nonce)
	signed.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	return http.DefaultTransport.RoundTrip(signed)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// ok returns the answer of a call that must succeed.
func ok[T any](answer T, _ *http.Response, err error) T { return must(answer, err) }

func main() {
	config := artseal.NewConfiguration()
	config.Servers = artseal.ServerConfigurations{{URL: os.Getenv("ARTSEAL_URL")}}
	config.HTTPClient = &http.Client{Transport: signing{}}
	client, ctx := artseal.NewAPIClient(config), context.Background()

	artwork := artseal.NewFilingRequest(`齐白石 "Qi" 🖌`, "1947", "68 × 136 cm", "ink & colour", "good", 12_800_000)
	receipt := ok(client.FilingAPI.CreateFiling(ctx).FilingRequest(*artwork).IdempotencyKey(rand.Text()).Execute())
	filing := ok(client.FilingAPI.GetFiling(ctx, receipt.FilingNo).Execute())
	terms := artseal.NewEscrowRequest(filing.FilingNo, artseal.GUARANTEE, filing.Price, "buyer-1", "seller-1")
	opened := ok(client.EscrowAPI.CreateEscrow(ctx).EscrowRequest(*terms).Execute())
	release := client.EscrowAPI.ReleaseEscrow(ctx, opened.EscrowId)
	released := ok(release.Execute())
	_, _, err := release.Execute()
	var apiError *artseal.GenericOpenAPIError
	if !errors.As(err, &apiError) {
		log.Fatal(err)
	}
	provenance := ok(client.ProvenanceAPI.GetProvenance(ctx, filing.FilingNo).Execute())

	endpoint := artseal.NewWebhookRequest("https://gallery.example/hooks?of=sales")
	endpoint.SetEventTypes([]string{"escrow.released"})
	created := ok(client.WebhooksAPI.CreateWebhook(ctx).WebhookRequest(*endpoint).Execute())
	webhooks := ok(client.WebhooksAPI.ListWebhooks(ctx).Execute())

	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"receipt":    receipt,
		"filing":     filing,
		"opened":     opened,
		"released":   released,
		"apiError":    apiError.Model(),
		"provenance": provenance,
		"created":    created,
		"webhooks":   webhooks,
	})
}
