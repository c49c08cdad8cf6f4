package artseal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	webhookTolerance     = 5 * time.Minute
	webhookKeyBytesMin   = 24
	webhookSignaturesMax = 32
)

// Webhooks verifies what arrives at an endpoint.
type Webhooks struct {
	// Secrets are the secrets of the endpoint, whsec_ included. A signature by any of them is enough.
	Secrets []string
	// Tolerance is the largest difference between the time of a webhook and now; 0 means five minutes.
	Tolerance time.Duration
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Verify returns the event of a webhook, or an error if it must not be trusted. The body is as it arrived, byte for
// byte. An event can arrive more than once: the header webhook-id is then the same.
func (w Webhooks) Verify(header http.Header, body []byte) (*EventMessage, error) {
	if w.Tolerance == 0 {
		w.Tolerance = webhookTolerance
	}
	if w.Now == nil {
		w.Now = time.Now
	}
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if id == "" || err != nil {
		return nil, errors.New("artseal: webhook-id or webhook-timestamp is missing or malformed")
	}
	if w.Now().Sub(time.Unix(int64(seconds), 0)).Abs() > w.Tolerance {
		return nil, fmt.Errorf("artseal: webhook-timestamp is more than %v from now", w.Tolerance)
	}
	signatures := strings.SplitN(strings.Join(header.Values("webhook-signature"), " "), " ", webhookSignaturesMax)
	isSigned := false
	for _, secret := range w.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < webhookKeyBytesMin {
			return nil, errors.New("artseal: Secrets must be secrets of webhooks as they were issued, whsec_ included")
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, signature := range signatures {
			isSigned = hmac.Equal(expected, []byte(signature)) || isSigned
		}
	}
	if !isSigned {
		return nil, errors.New("artseal: no signature is of this body by these secrets")
	}
	event := new(EventMessage)
	if err := json.Unmarshal(body, event); err != nil {
		return nil, fmt.Errorf("artseal: the body is signed, but is no event: %w", err)
	}
	return event, nil
}
