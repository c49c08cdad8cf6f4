// Package artseal calls the REST API of an Artseal registry: it signs requests, retries them safely, follows pages and
// verifies webhooks. It needs the standard library only.
package artseal

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	version          = "0.1.0"
	triesMax         = 4
	responseBytesMax = 4 << 20
	clockOffsetMax   = 24 * time.Hour
	defaultTimeout   = time.Minute
	firstPause       = 250 * time.Millisecond
)

var (
	visible      = regexp.MustCompile(`^[\x21-\x7e]+$`)
	address      = regexp.MustCompile(`^https?://[^/?#@]+/?$`)
	emptyPart    = regexp.MustCompile(`/\.{0,2}(/|$)`)
	thisMachine  = regexp.MustCompile(`^(localhost|127\.[0-9.]+|::1)$`)
	helpLink     = regexp.MustCompile(`<([^>]*)>\s*;\s*rel="?help"?`)
	wholeSeconds = regexp.MustCompile(`^[0-9]{1,9}$`)
)

// Error is the error of a call that failed.
type Error struct {
	// Code says what is wrong: a code of the API; NO_RESPONSE if the last try got no response, so that the result is
	// unknown; or BAD_RESPONSE if the response is not one of an Artseal server.
	Code    string
	Message string
	// Status is the HTTP status; 0 if there was no response.
	Status int
	// RequestID names the call in the operator's log.
	RequestID string
	// Help is the address of a page that explains Code.
	Help  string
	cause error
}

// Error returns what is known of the error.
func (e *Error) Error() string {
	return fmt.Sprintf("artseal: %s: %s (status %d, request %q)", e.Code, e.Message, e.Status, e.RequestID)
}

// Unwrap returns the error of the network or the context, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Config says whom to call, and as whom.
type Config struct {
	// BaseURL is the address of the service, such as https://registry.example.
	BaseURL string
	// APIKey and APISecret are the credentials as the operator issued them.
	APIKey, APISecret string
	// Timeout limits a call with all its tries; 0 means a minute.
	Timeout time.Duration
	// Transport sends requests; nil means [http.DefaultTransport].
	Transport http.RoundTripper
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Format writes the configuration without its secret.
func (c Config) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "artseal.Config of %q at %q", c.APIKey, c.BaseURL)
}

// Client calls one service. It is safe for concurrent use.
type Client struct {
	config      Config
	base        *url.URL
	http        http.Client
	clockOffset atomic.Int64 // nanoseconds
}

// Format writes the configuration without its secret.
func (c *Client) Format(state fmt.State, verb rune) { c.config.Format(state, verb) }

// New returns a client, or an error if a field of the configuration is not valid. It sends nothing.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil || !address.MatchString(config.BaseURL) {
		return nil, errors.New("artseal: BaseURL must be an address such as https://registry.example, without a path")
	}
	if !visible.MatchString(config.APIKey) || !visible.MatchString(config.APISecret) {
		return nil, errors.New("artseal: APIKey and APISecret must be as issued, without white space")
	}
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	// A signature is for one target.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{config: config, base: base, http: http.Client{Transport: config.Transport, CheckRedirect: stay}}, nil
}

// IdempotencyKey names a request, so that a repeated call has one effect. Without it, each call has a new key.
type IdempotencyKey string

// call makes a call with as many tries as it needs.
func call[T any](ctx context.Context, c *Client, method, target string, query url.Values, body any, keys []IdempotencyKey) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	if emptyPart.MatchString(target) {
		return nil, fmt.Errorf("artseal: %s has a part that is empty, . or ..", target)
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	header := http.Header{"User-Agent": {"artseal-go/" + version}}
	var content []byte
	if body != nil {
		header.Set("Content-Type", "application/json")
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	if method != http.MethodGet {
		header.Set("Idempotency-Key", rand.Text())
		for _, key := range keys {
			header.Set("Idempotency-Key", string(key))
		}
		if !visible.MatchString(header.Get("Idempotency-Key")) {
			return nil, errors.New("artseal: an Idempotency-Key has visible ASCII characters only")
		}
	}
	for try, clockWasSet := 1, false; ; try++ {
		result := new(T)
		response, failure := c.try(ctx, method, target, content, header, result)
		if failure == nil {
			return result, nil
		}
		if try == triesMax {
			return nil, failure
		}
		if failure.Code == "TIMESTAMP_EXPIRED" && !clockWasSet && c.setClock(response) {
			clockWasSet = true
		} else if !isTemporary(failure) || !sleep(ctx, pause(response, try)) {
			return nil, failure
		}
	}
}

// try sends one signed request. The response, whose body is read, is nil if there was none.
func (c *Client) try(ctx context.Context, method, target string, content []byte, header http.Header, result any) (*http.Response, *Error) {
	// The transport repeats a request whose body it can get again, with the same nonce. Of this body it knows nothing.
	body := io.NopCloser(struct{ io.Reader }{bytes.NewReader(content)})
	request, err := http.NewRequestWithContext(ctx, method, c.base.Scheme+"://"+c.base.Host+target, body)
	var response *http.Response
	if err == nil {
		request.ContentLength = int64(len(content))
		request.Header = header.Clone()
		c.sign(request, target, content)
		response, err = c.http.Do(request)
	}
	if err == nil {
		defer response.Body.Close()
		content, err = io.ReadAll(io.LimitReader(response.Body, responseBytesMax+1))
	}
	if err != nil {
		return nil, &Error{Code: "NO_RESPONSE", Message: "No response: " + err.Error() + ".", cause: err}
	}
	return response, c.decode(response, content, result)
}

// sign adds the four headers of a signed request.
func (c *Client) sign(request *http.Request, target string, content []byte) {
	now := c.config.Now().Add(time.Duration(c.clockOffset.Load()))
	timestamp, nonce, digest := strconv.FormatInt(now.Unix(), 10), rand.Text(), sha256.Sum256(content)
	mac := hmac.New(sha256.New, []byte(c.config.APISecret))
	io.WriteString(mac, request.Method+target+hex.EncodeToString(digest[:])+timestamp+nonce)
	request.Header.Set("X-Api-Key", c.config.APIKey)
	request.Header.Set("X-Timestamp", timestamp)
	request.Header.Set("X-Nonce", nonce)
	request.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
}

// decode fills result, a pointer, from a response, or returns its error.
func (c *Client) decode(response *http.Response, content []byte, result any) *Error {
	failure := &Error{Code: "BAD_RESPONSE", Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	failure.Message = fmt.Sprintf("The response with status %d is not one of an Artseal server.", response.StatusCode)
	if link := helpLink.FindStringSubmatch(response.Header.Get("Link")); link != nil {
		if help, err := c.base.Parse(link[1]); err == nil {
			failure.Help = help.String()
		}
	}
	text, isText := result.(*string)
	var sent struct{ Code, Message, RequestID string }
	switch {
	case len(content) > responseBytesMax:
		failure.Message = fmt.Sprintf("The response has over %d bytes.", responseBytesMax)
	case response.StatusCode/100 == 2 && isText:
		*text = string(content)
		return nil
	case response.StatusCode/100 == 2:
		if failure.cause = json.Unmarshal(content, result); failure.cause == nil {
			return nil
		}
	case response.StatusCode >= 400 && json.Unmarshal(content, &sent) == nil && sent.Code != "":
		failure.Code, failure.Message = sent.Code, sent.Message
		if sent.RequestID != "" {
			failure.RequestID = sent.RequestID
		}
	}
	return failure
}

// setClock takes the time from a response. It returns false if the time is missing, implausible, or not from the server
// for certain: a network that sets the clock could send a signed request much later.
func (c *Client) setClock(response *http.Response) bool {
	if c.base.Scheme != "https" && !thisMachine.MatchString(c.base.Hostname()) {
		return false
	}
	date, err := http.ParseTime(response.Header.Get("Date"))
	offset := date.Sub(c.config.Now())
	if err != nil || offset.Abs() > clockOffsetMax {
		return false
	}
	c.clockOffset.Store(int64(offset))
	return true
}

// isTemporary reports whether another try may succeed. Each call is a read or has an Idempotency-Key.
func isTemporary(failure *Error) bool {
	return failure.Code == "IDEMPOTENCY_IN_PROGRESS" || slices.Contains([]int{0, 429, 500, 502, 503, 504}, failure.Status)
}

// pause returns how long to wait after a try: as long as the server says, or twice as long as before, with jitter.
func pause(response *http.Response, try int) time.Duration {
	if response != nil && wholeSeconds.MatchString(response.Header.Get("Retry-After")) {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second
	}
	longest := firstPause << (try - 1)
	return longest/2 + mathrand.N(longest/2)
}

// sleep waits. It returns false, at once if it can, if the context ends first.
func sleep(ctx context.Context, duration time.Duration) bool {
	if deadline, _ := ctx.Deadline(); time.Until(deadline) <= duration {
		return false
	}
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
	return ctx.Err() == nil
}
