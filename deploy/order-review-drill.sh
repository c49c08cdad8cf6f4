#!/bin/sh
# Practises the decisions about an order in review (docs/operate/incidents/order-needs-review.md) against a sandbox.
#
#   sh order-review-drill.sh amount|contradiction|declined|silent|returned
#
# Run it on the machine of a running sandbox: with the Debian package as root; in a checkout in its folder, as
# `sh deploy/order-review-drill.sh amount`; otherwise in the folder where the sandbox was started, with `artseal` on the PATH.
# It opens an order that needs review, prints it with its reason, decides, and prints what the order is then.
set -eu

if command -v artseal-admin >/dev/null; then
  artseal() { artseal-admin "$@"; }
elif ! command -v artseal >/dev/null; then
  artseal() { npm run -s artseal -- "$@"; }
fi

artwork='{"author":"Drill","era":"2026","size":"1 x 1 cm","material":"ink","condition":"good","price":12800000}'

# Files an artwork and opens an order for it, with this buyer and this seller.
sell() {
  filing=$(artseal call POST /api/v1/filing "$artwork" 2>/dev/null | grep -o 'AS-[0-9]*-[0-9]*' | head -n 1)
  sale="{\"filingNo\":\"$filing\",\"type\":\"GUARANTEE\",\"amount\":12800000,\"buyerId\":\"$1\",\"sellerId\":\"$2\"}"
  order=$(artseal call POST /api/v1/escrow "$sale" 2>/dev/null | grep -o 'ES-[0-9]*-[0-9A-Z]*' | head -n 1)
}
decide() { artseal escrow resolve "$order" "$1" --reason drill; }
wait_for_review() { until artseal escrow list --review | grep "$order"; do sleep 1; done; }
wait_for_state() { until artseal escrow list --state "$1" | grep "$order"; do sleep 1; done; }

case ${1-} in
  amount) # The provider holds another amount. You return it: the order is CLOSED.
    sell sim-wrong-amount seller-1
    wait_for_review
    decide --return
    wait_for_state CLOSED
    ;;
  contradiction) # The provider paid out what it should hold. You accept: the order is RELEASED, the work has its TRANSFER.
    sell sim-contradiction seller-1
    wait_for_review
    decide --accept
    wait_for_state RELEASED
    artseal call GET "/api/v1/provenance/$filing"
    ;;
  declined) # You close an order; the provider declines to return the money. In the sandbox it always will: you accept.
    sell sim-must-act-never sim-refuse-return
    decide --close
    wait_for_review
    decide --accept
    wait_for_state CLOSED
    ;;
  silent) # The provider does not respond. You stop the order, then close it; a hold that still comes goes back.
    sell sim-silent seller-1
    decide --stop
    wait_for_review
    decide --close
    wait_for_state CLOSED
    ;;
  returned) # Money comes back five seconds after the release. You accept; the history of the order shows it.
    # The same with sim-refund-part-later, sim-dispute-later, sim-dispute-won-later and sim-dispute-lost-later.
    sell buyer-1 sim-refund-later
    artseal call POST "/api/v1/escrow/$order/release"
    wait_for_review
    decide --accept
    artseal call GET "/api/v1/escrow/$order"
    ;;
  *)
    echo "usage: $0 amount|contradiction|declined|silent|returned" >&2
    exit 2
    ;;
esac
