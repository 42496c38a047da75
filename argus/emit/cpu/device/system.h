// What the runtime needs from Linux on x86-64, without a C library: system calls, memory, text output.
#pragma once
#include "api.h"

static i64 call_kernel(i64 number, i64 a, i64 b = 0, i64 c = 0, i64 d = 0, i64 e = 0, i64 f = 0) {
    i64 result;
    register i64 r10 asm("r10") = d;
    register i64 r8 asm("r8") = e;
    register i64 r9 asm("r9") = f;
    asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}
[[noreturn]] static void leave(int status) {
    call_kernel(231, status);
    __builtin_unreachable();
}

enum { RLIMIT_CORE = 4, RLIMIT_AS = 9 };
static void limit_resource(int which, u64 most) {
    const u64 limit[2] = {most, most};
    if (call_kernel(160, which, (i64)limit)) leave(106);
}

// The compiler emits calls of these.
extern "C" void* memcpy(void* to, const void* from, u64 size) {
    void* place = to;
    asm volatile("rep movsb" : "+D"(place), "+S"(from), "+c"(size)::"memory");
    return to;
}
extern "C" void* memset(void* to, int value, u64 size) {
    void* place = to;
    asm volatile("rep stosb" : "+D"(place), "+c"(size) : "a"(value) : "memory");
    return to;
}
extern "C" void* memmove(void* to, const void* from, u64 size) {
    if (to <= from || (char*)from + size <= (char*)to) return memcpy(to, from, size);
    for (u64 at = size; at-- > 0;) ((volatile char*)to)[at] = ((const char*)from)[at];
    return to;
}

static bool differ(const u8* a, const u8* b, u64 size) {
    for (u64 n = 0; n < size; ++n)
        if (a[n] != b[n]) return true;
    return false;
}

// Fresh zeroed pages, committed when touched. Status 101: the limit of memory does not allow them.
static u8* pages(u64 size) {
    const i64 at = call_kernel(9, 0, (i64)size, 3, 0x4022, -1, 0);
    if (at < 0 && at > -4096) leave(101);
    return (u8*)at;
}
// A bump allocator; nothing is freed but through `Pool`.
static u8 *fresh, *fresh_end;
static void* allocate(u64 size) {
    size = size + 63 & ~63ull;
    if (fresh + size > fresh_end) {
        const u64 chunk = size > (4u << 20) ? size : (4u << 20);
        fresh = pages(chunk);
        fresh_end = fresh + chunk;
    }
    void* made = fresh;
    fresh += size;
    return made;
}
template <class T> static T* allocate_array(u64 count) { return (T*)allocate(count * sizeof(T)); }

// A growable array.
template <class T> struct List {
    T* items = nullptr;
    u32 count = 0, room = 0;
    void add(const T& item) {
        if (count == room) {
            T* more = allocate_array<T>(room = room ? 2 * room : 8);
            if (count) memcpy(more, items, count * sizeof(T));
            items = more;
        }
        items[count++] = item;
    }
    void remove(u32 at) {
        for (; at + 1 < count; ++at) items[at] = items[at + 1];
        --count;
    }
    T& operator[](u32 at) { return items[at]; }
};

struct Text {
    char* at;
    int size, room;
    void put(char c) { if (size < room) at[size++] = c; }
    Text& operator<<(const char* text) { while (*text) put(*text++); return *this; }
    Text& operator<<(i64 value) {
        char digits[24];
        int count = 0;
        u64 rest = value < 0 ? -(u64)value : (u64)value;
        do digits[count++] = (char)('0' + rest % 10); while (rest /= 10);
        if (value < 0) put('-');
        while (count) put(digits[--count]);
        return *this;
    }
    Text& operator<<(int value) { return *this << (i64)value; }
    Text& operator<<(u32 value) { return *this << (i64)value; }
    Text& operator<<(u64 value) { return *this << (i64)value; }
};
static void write_all(int file, const void* from, u64 size) {
    for (const char* at = (const char*)from; size;) {
        const i64 done = call_kernel(1, file, (i64)at, (i64)size);
        if (done <= 0) leave(102);
        at += done;
        size -= (u64)done;
    }
}
static void read_all(int file, void* to, u64 size) {
    for (char* at = (char*)to; size;) {
        const i64 done = call_kernel(0, file, (i64)at, (i64)size);
        if (done <= 0) leave(103);
        at += done;
        size -= (u64)done;
    }
}

struct Random {
    u64 state = 1;
    u64 next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state * 0x2545F4914F6CDD1Dull >> 16;
    }
    u32 below(u32 n) { return (u32)(next() % n); }
    bool one_in(u32 n) { return below(n) == 0; }
};
