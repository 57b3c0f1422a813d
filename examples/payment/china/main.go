// A shop that is paid by Alipay and WeChat Pay, without an SDK: each order is booked once.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/nethttp"
)

func main() {
	db, err := sql.Open("sqlite", os.Getenv("DATABASE")) // with the tables orders and booked
	h, err2 := callbacks(redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS"), ContextTimeoutEnabled: true}), db, os.Getenv)
	if err := errors.Join(err, err2); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(os.Getenv("LISTEN"), h))
}

func callbacks(rdb *redis.Client, db *sql.DB, env func(string) string) (http.Handler, error) {
	keys, err1 := callback.NewWeChatPayKeys(map[string]string{env("WECHATPAY_KEY_ID"): env("WECHATPAY_KEY")})
	signed, err2 := callback.VerifyWeChatPay(keys)
	wechat, err3 := callback.OpenWeChatPay(signed, env("WECHATPAY_API_V3_KEY"))
	alipay, err4 := callback.VerifyAlipay(env("ALIPAY_APP_ID"), env("ALIPAY_CERT"))
	guard, err5 := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{Retention: callback.WeChatPay().Retention})
	w, err6 := callback.New(callback.WeChatPay(), guard, wechat, func(ctx context.Context, e *callback.Event) error {
		var n struct {
			Type     string `json:"event_type"`
			Resource struct {
				State  string `json:"trade_state"`
				Amount struct {
					Total    int64 // in fen
					Currency string
				}
			}
		}
		err := json.Unmarshal(e.Payload, &n)
		if r := n.Resource; err == nil && n.Type == "TRANSACTION.SUCCESS" && r.State == "SUCCESS" {
			err = book(ctx, db, "wechatpay", e.Order, fmt.Sprintf("%s %d.%02d", r.Amount.Currency, r.Amount.Total/100, r.Amount.Total%100))
		}
		return err // nil also acknowledges what is no payment
	}, &callback.Options{OnError: func(_ context.Context, err error) { log.Print(err) }})
	a, err7 := callback.New(callback.Alipay(), guard, alipay, func(ctx context.Context, e *callback.Event) error {
		form, err := url.ParseQuery(string(e.Payload))
		if s := form.Get("trade_status"); err == nil && !form.Has("gmt_refund") && (s == "TRADE_SUCCESS" || s == "TRADE_FINISHED") {
			err = book(ctx, db, "alipay", e.Order, "CNY "+form.Get("total_amount"))
		}
		return err
	}, &callback.Options{OnError: func(_ context.Context, err error) { log.Print(err) }})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /callbacks/wechatpay", nethttp.Handler(w))
	mux.Handle("POST /callbacks/alipay", nethttp.Handler(a))
	return mux, nil
}

// book books a payment once: shop_order is the primary key of booked. A price is such as CNY 9.90.
func book(ctx context.Context, db *sql.DB, provider, order, price string) error {
	var by string
	err := db.QueryRowContext(ctx, `INSERT INTO booked (shop_order, provider) SELECT id, $1 FROM orders WHERE id = $2 AND price = $3
		ON CONFLICT (shop_order) DO UPDATE SET provider = booked.provider RETURNING provider`, provider, order, price).Scan(&by)
	if errors.Is(err, sql.ErrNoRows) || err == nil && by != provider {
		return callback.Reject(fmt.Errorf("order %s: there is no such order at this price, or another provider was paid: refund it", order))
	}
	return err
}
