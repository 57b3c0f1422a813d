package main

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

const (
	v3Key = "an API v3 key has 32 bytes......"
	keyID = "PUB_KEY_ID_17"
	app   = "2021000117650139"
)

// provider is both providers: they sign with one key here.
type provider struct{ key *rsa.PrivateKey }

func (p provider) sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, p.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// alipay is a payment of an order as Alipay sends it.
func (p provider) alipay(order, yuan, status string) *http.Request {
	form := url.Values{
		"app_id": {app}, "charset": {"utf-8"}, "notify_id": {"n-" + order + status}, "out_trade_no": {order}, "seller_id": {"2088"},
		"total_amount": {yuan}, "trade_status": {status},
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		fields = append(fields, name+"="+form.Get(name))
	}
	form.Set("sign", p.sign(strings.Join(fields, "&")))
	form.Set("sign_type", "RSA2")
	return httptest.NewRequest("POST", "/callbacks/alipay", strings.NewReader(form.Encode()))
}

// wechat is a payment of an order as WeChat Pay sends it.
func (p provider) wechat(order string, fen int) *http.Request {
	resource := fmt.Sprintf(`{"mchid":"1900","out_trade_no":%q,"trade_state":"SUCCESS","amount":{"total":%d,"currency":"CNY"}}`, order, fen)
	block, err := aes.NewCipher([]byte(v3Key))
	if err != nil {
		panic(err)
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	sealed := base64.StdEncoding.EncodeToString(box.Seal(nil, []byte("123456789012"), []byte(resource), nil))
	body := fmt.Sprintf(`{"id":%q,"event_type":"TRANSACTION.SUCCESS","resource":{"algorithm":"AEAD_AES_256_GCM","ciphertext":%q,"nonce":"123456789012"}}`,
		rand.Text(), sealed)
	now := fmt.Sprint(time.Now().Unix())
	r := httptest.NewRequest("POST", "/callbacks/wechatpay", strings.NewReader(body))
	r.Header.Set("Wechatpay-Serial", keyID)
	r.Header.Set("Wechatpay-Timestamp", now)
	r.Header.Set("Wechatpay-Nonce", "17")
	r.Header.Set("Wechatpay-Signature", p.sign(now+"\n17\n"+body+"\n"))
	return r
}

// TestEachOrderIsBookedOnce whatever is sent, and however often.
func TestEachOrderIsBookedOnce(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `
		CREATE TABLE orders (id TEXT PRIMARY KEY, price TEXT NOT NULL);
		CREATE TABLE booked (shop_order TEXT PRIMARY KEY, provider TEXT NOT NULL);
		INSERT INTO orders VALUES ('a1', 'CNY 9.90'), ('a2', 'CNY 9.90'), ('w1', 'CNY 9.90'), ('w2', 'CNY 9.90')`); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"WECHATPAY_KEY_ID": keyID, "WECHATPAY_KEY": public, "WECHATPAY_API_V3_KEY": v3Key, "ALIPAY_APP_ID": app, "ALIPAY_CERT": public}
	h, err := callbacks(redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), ContextTimeoutEnabled: true}), db, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(r *http.Request) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	var said bytes.Buffer
	log.SetOutput(&said)
	p := provider{key}
	forged := httptest.NewRequest("POST", "/callbacks/alipay", strings.NewReader("out_trade_no=a2&notify_id=1&trade_status=TRADE_SUCCESS"))
	stolen := p.wechat("w2", 990)
	stolen.Header.Set("Wechatpay-Nonce", "18")
	for name, c := range map[string]struct {
		r    *http.Request
		want int
	}{
		"forged": {forged, 401}, "forged for WeChat Pay": {stolen, 401}, "not paid": {p.alipay("a2", "9.90", "WAIT_BUYER_PAY"), 200},
		"another price": {p.alipay("a2", "9.91", "TRADE_SUCCESS"), 400}, "another price by WeChat Pay": {p.wechat("w2", 991), 400},
		"no order": {p.wechat("w3", 990), 400},
	} {
		if got := deliver(c.r); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { deliver(p.alipay("a1", "9.90", "TRADE_SUCCESS")) })
		wg.Go(func() { deliver(p.wechat("w1", 990)) })
	}
	wg.Wait()
	for name, c := range map[string]struct {
		r    *http.Request
		want int
	}{
		"again": {p.alipay("a1", "9.90", "TRADE_SUCCESS"), 200}, "months later": {p.alipay("a1", "9.90", "TRADE_FINISHED"), 200},
		"again by WeChat Pay": {p.wechat("w1", 990), 204}, "paid to both": {p.wechat("a1", 990), 400},
	} {
		if got := deliver(c.r); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	log.SetOutput(os.Stderr)
	for _, order := range []string{"a1", "a2", "w2", "w3"} {
		if !strings.Contains(said.String(), "order "+order+": ") {
			t.Errorf("the log does not name the rejected order %s, want it in:\n%s", order, said.String())
		}
	}
	var booked string
	err = db.QueryRowContext(t.Context(), "SELECT group_concat(shop_order || ' by ' || provider, ', ' ORDER BY shop_order) FROM booked").Scan(&booked)
	if want := "a1 by alipay, w1 by wechatpay"; err != nil || booked != want {
		t.Errorf("got booked %q, %v, want %q", booked, err, want)
	}
}

// TestItIsShort and uses no SDK.
func TestItIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > 80 || bytes.Contains(text, []byte("wechatpay-go")) {
		t.Errorf("got %d lines, want 80 at most", lines)
	}
}
