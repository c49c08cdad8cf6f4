// As verify.py, with VerifyWebhook of docs/platforms/webhooks.md, here as receiver.go.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var parts []string
		for _, part := range strings.Split(lines.Text(), "\t") {
			decoded, err := base64.StdEncoding.DecodeString(part)
			if err != nil {
				panic(err)
			}
			parts = append(parts, string(decoded))
		}
		seconds, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			panic(err)
		}
		header := http.Header{}
		for place, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			if parts[2+place] != "" {
				header.Set(name, parts[2+place])
			}
		}
		if VerifyWebhook(parts[0], header, []byte(parts[5]), time.Unix(seconds, 0)) == nil {
			fmt.Println("accepted")
		} else {
			fmt.Println("refused")
		}
	}
}
