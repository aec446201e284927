; Functions whose machine code is made an image, each below its name.

; ## SUM
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%b = getelementptr i64, ptr %arguments, i64 1
%x = load i64, ptr %arguments
%y = load i64, ptr %b
%r = add i64 %x, %y
store i64 %r, ptr %result
ret i32 0
}

; ## TABLE
@table = private constant [4 x i64] [i64 7, i64 -5, i64 11, i64 13]
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%at = load i64, ptr %arguments
%place = getelementptr [4 x i64], ptr @table, i64 0, i64 %at
%r = load i64, ptr %place
store i64 %r, ptr %result
ret i32 0
}

; ## POINTERS
@one = private constant i64 1
@two = private constant i64 2
@table = private constant [2 x ptr] [ptr @two, ptr @one]
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%at = load i64, ptr %arguments
%place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %at
%found = load ptr, ptr %place
%r = load i64, ptr %found
store i64 %r, ptr %result
ret i32 0
}

; ## LIBRARY
declare ptr @memset(ptr, i32, i64)
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%space = alloca i64
%n = load i64, ptr %arguments
%byte = trunc i64 %n to i32
%s = call ptr @memset(ptr %space, i32 %byte, i64 8)
%again = call ptr @memset(ptr %space, i32 %byte, i64 4)
%r = load i64, ptr %space
store i64 %r, ptr %result
ret i32 0
}

; ## OTHER_LIBRARY
declare i64 @abs(i64)
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%n = load i64, ptr %arguments
%r = call i64 @abs(i64 %n)
store i64 %r, ptr %result
ret i32 0
}

; ## CALLED
define i64 @double(i64 %x) noinline {
%r = add i64 %x, %x
ret i64 %r
}
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%n = load i64, ptr %arguments
%r = call i64 @double(i64 %n)
store i64 %r, ptr %result
ret i32 0
}

; ## WRITTEN
@state = internal global i64 3
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%r = load volatile i64, ptr @state
%n = add i64 %r, 1
store volatile i64 %n, ptr @state
store i64 %r, ptr %result
ret i32 0
}

; ## ELSEWHERE
@state = external thread_local global i64
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {
%r = load i64, ptr @state
store i64 %r, ptr %result
ret i32 0
}

; ## KEPT
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) #0 {
  %address = load ptr, ptr %arguments
  %place = getelementptr i64, ptr %arguments, i64 1
  %added = load i64, ptr %place
  %before = load i64, ptr %address
  %sum = add i64 %before, %added
  store i64 %sum, ptr %address
  ret i32 0
}
